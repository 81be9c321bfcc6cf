import * as v from 'valibot';
import { Failure } from '../core/failure.ts';
import type { Grant } from '../core/grant.ts';
import type { Pairing } from '../core/pairing.ts';
import { Secret } from '../core/secret.ts';
import type { StoredGrant } from '../core/store.ts';
import type { Sealing } from './sealing.ts';

const instant = v.object({ boot: v.string(), uptime: v.number(), wall: v.number() });
const link = v.object({ authorizeUrl: v.string(), codeUrl: v.string(), tokenUrl: v.string() });
const scope = v.nullable(v.string());

const attempt = v.object({ token: v.string(), at: instant });
const doubt = v.nullable(v.object({ kind: v.exactOptional(v.literal('copy')), lostAt: instant, sends: v.number() }));
const grantAttributes = v.object({
  scope,
  lifetime: v.number(),
  obtained: instant,
  portalTime: v.nullable(v.number()),
});

/** Sealed together, because a token of an unknown age is no better than none; rows of before have them apart. */
const tokens = v.object({
  accessToken: v.string(),
  refreshToken: v.string(),
  attributes: v.exactOptional(grantAttributes),
});

const secretPart = v.object({ nonce: v.string(), link: v.nullable(link) });
const pairingAttributes = v.object({
  portal: v.string(),
  scope,
  begun: instant,
  lifetime: v.number(),
  spentCodes: v.array(v.string()),
  setback: v.nullable(v.picklist(['answer_lost', 'code_refused', 'portal_rejected'])),
});
const reasons = [
  'refused_by_user',
  'expired',
  'replaced',
  'cancelled',
  'portal_rejected',
  'foreign_origin',
  'code_refused',
  'answer_lost',
  'misconfigured',
] as const;
const step = v.variant('kind', [
  v.object({ kind: v.literal('asking') }),
  v.object({ kind: v.literal('waiting') }),
  v.object({ kind: v.literal('exchanging'), since: instant }),
  v.object({
    kind: v.literal('ended'),
    result: v.variant('kind', [
      v.object({ kind: v.literal('paired'), scope }),
      v.object({ kind: v.literal('failed'), reason: v.picklist(reasons) }),
    ]),
  }),
]);

/** A row of `grants` that holds tokens. */
export interface GrantRow {
  readonly appliance: string;
  readonly generation: number;
  readonly tokens: string;
  /** What is sealed with the tokens by now; null in rows that have it there. */
  readonly attributes: string | null;
  readonly attempt: string | null;
  readonly doubt: string | null;
  readonly refused: string | null;
}

/** A row of `pairings`. */
export interface PairingRow {
  readonly id: string;
  readonly appliance: string;
  readonly sealed: string;
  readonly attributes: string;
  readonly step: string;
}

/** A grant as a row, its tokens sealed; a new grant has no attempt under way. */
export async function grantRow(grant: Grant, sealing: Sealing): Promise<GrantRow> {
  const { appliance, generation, accessToken, refreshToken, lifetime, obtained, portalTime } = grant;
  const attributes = { scope: grant.scope, lifetime, obtained, portalTime };
  const secrets = { accessToken: accessToken.reveal(), refreshToken: refreshToken.reveal(), attributes };
  return {
    appliance,
    generation,
    tokens: await sealing.seal(`grants/${appliance}/${generation}`, JSON.stringify(secrets)),
    attributes: null,
    attempt: null,
    doubt: json(grant.doubt),
    refused: json(grant.refused),
  };
}

/** @throws Failure as {@link Sealing}, or `store_unreadable` */
export async function readGrant(row: GrantRow, sealing: Sealing): Promise<StoredGrant> {
  const where = `grants/${row.appliance}/${row.generation}`;
  const secrets = read(tokens, where, await sealing.open(where, row.tokens));
  return {
    grant: {
      appliance: row.appliance,
      generation: row.generation,
      accessToken: new Secret(secrets.accessToken),
      refreshToken: new Secret(secrets.refreshToken),
      ...(secrets.attributes ?? read(grantAttributes, where, row.attributes ?? 'null')),
      doubt: read(doubt, where, row.doubt ?? 'null'),
      refused: read(v.nullable(instant), where, row.refused ?? 'null'),
    },
    attempt: read(v.nullable(attempt), where, row.attempt ?? 'null'),
  };
}

/** A pairing as a row: its nonce and its link are sealed, since who has them could plant or fetch a code. */
export async function pairingRow(pairing: Pairing, sealing: Sealing): Promise<PairingRow> {
  const { id, appliance, nonce, portal, begun, lifetime, spentCodes, setback } = pairing;
  const held = 'link' in pairing.step ? pairing.step.link : null;
  const { link: _, ...bare } = { link: null, ...pairing.step };
  return {
    id,
    appliance,
    sealed: await sealing.seal(`pairings/${id}`, JSON.stringify({ nonce, link: held })),
    attributes: JSON.stringify({ portal, scope: pairing.scope, begun, lifetime, spentCodes, setback }),
    step: JSON.stringify(bare),
  };
}

/** @throws Failure as {@link Sealing}, or `store_unreadable` */
export async function readPairing(row: PairingRow, sealing: Sealing): Promise<Pairing> {
  const where = `pairings/${row.id}`;
  const { nonce, link: held } = read(secretPart, where, await sealing.open(where, row.sealed));
  const bare = read(step, where, row.step);
  const common = { id: row.id, appliance: row.appliance, nonce, ...read(pairingAttributes, where, row.attributes) };
  if (bare.kind === 'asking' || bare.kind === 'ended') return { ...common, step: bare };
  if (held === null) throw new Failure('store_unreadable', `${where} has lost its link`);
  return { ...common, step: { ...bare, link: held } };
}

function read<const Schema extends v.GenericSchema>(
  schema: Schema,
  where: string,
  text: string,
): v.InferOutput<Schema> {
  try {
    return v.parse(schema, JSON.parse(text));
  } catch {
    // Without the cause: a parser's message quotes what it could not read, and that may be a token.
    throw new Failure('store_unreadable', `${where} is damaged: put back a copy of the state directory`);
  }
}

function json(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}
