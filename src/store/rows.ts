import * as v from 'valibot';
import { Failure } from '../core/failure.ts';
import type { Grant } from '../core/grant.ts';
import type { Pairing } from '../core/pairing.ts';
import { Secret } from '../core/secret.ts';
import type { Attempt, StoredGrant } from '../core/store.ts';
import { doubt, instant, jsonOrNull, parseJson, portalIdentity, scope } from './schemas.ts';
import type { Sealing } from './sealing.ts';

const link = v.object({
  authorizeUrl: v.string(),
  codeUrl: v.string(),
  tokenUrl: v.string(),
  redirect: v.nullable(v.string()),
});

const attempt = v.nullable(v.object({ token: v.string(), at: instant }));
const grantAttributes = v.object({
  scope,
  lifetime: v.number(),
  obtained: instant,
  portalTime: v.nullable(v.number()),
  asked: scope,
  account: v.exactOptional(v.string()),
  givenBy: portalIdentity,
});

/** An attempt takes some 130 characters, and its times have a digit more now and then. */
const ATTEMPT_STEP = 160;
/** Times and tokens of one portal differ by a few characters from one refresh to the next. */
const SECRETS_STEP = 64;

/** Sealed together, because a token of an unknown age is no better than none. */
const tokens = v.object({
  accessToken: v.string(),
  refreshToken: v.string(),
  attributes: grantAttributes,
});

/** What could plant or fetch a code. */
const secretPart = v.object({
  nonce: v.string(),
  link: v.nullable(link),
  earlier: v.exactOptional(v.array(link)),
  device: v.nullable(
    v.object({
      codeHash: v.string(),
      userCode: v.string(),
      superseded: v.exactOptional(v.array(v.object({ codeHash: v.string(), userCode: v.string() }))),
      shared: v.exactOptional(v.literal(true)),
    }),
  ),
});
const pairingAttributes = v.object({
  portal: v.string(),
  scope,
  begun: instant,
  lifetime: v.number(),
  spentCodes: v.array(v.string()),
  setback: v.nullable(v.picklist(['answer_lost', 'code_refused', 'portal_rejected'])),
  round: v.exactOptional(v.string()),
});
/** Why a pairing came to nothing. */
export const reasons = [
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
  readonly attempt: string | null;
  readonly doubt: string | null;
  readonly refused: string | null;
  readonly distrusted: string | null;
}

/** A row of `pairings`. */
export interface PairingRow {
  readonly id: string;
  readonly appliance: string;
  readonly sealed: string;
  readonly attributes: string;
  readonly step: string;
  readonly mac: string | null;
}

/**
 * The refresh under way as a column. It is as long as none, so that SQLite writes the one page that it is on, and not the
 * row with all of its tokens.
 */
export function attemptColumn(attempt: Attempt | null): string {
  return filled(JSON.stringify(attempt), ATTEMPT_STEP);
}

/** A JSON text, filled up with blanks to a multiple of so many characters: a row that keeps its length keeps its pages. */
function filled(json: string, step: number): string {
  return json.padEnd(step * Math.ceil(json.length / step));
}

/** What a grant's tokens are sealed for: no other appliance's, and no earlier ones. */
export function grantPlace({ appliance, generation }: Pick<GrantRow, 'appliance' | 'generation'>): string {
  return `grants/${appliance}/${generation}`;
}

/** A grant as a row, its tokens sealed; a new grant has no attempt under way. */
export function grantRow(grant: Grant, sealing: Sealing): GrantRow {
  const { appliance, generation, accessToken, refreshToken, lifetime, obtained, portalTime, asked, account, givenBy } =
    grant;
  const attributes = { scope: grant.scope, lifetime, obtained, portalTime, asked, account, givenBy };
  const secrets = { accessToken: accessToken.reveal(), refreshToken: refreshToken.reveal(), attributes };
  return {
    appliance,
    generation,
    tokens: sealing.seal(grantPlace(grant), filled(JSON.stringify(secrets), SECRETS_STEP)),
    attempt: attemptColumn(null),
    doubt: jsonOrNull(grant.doubt),
    refused: jsonOrNull(grant.refused),
    distrusted: jsonOrNull(grant.distrusted),
  };
}

/** @throws Failure as {@link Sealing}, or `store_unreadable` */
export function readGrant(row: GrantRow, sealing: Sealing): StoredGrant {
  const where = grantPlace(row);
  const secrets = parseJson(tokens, where, sealing.open(where, row.tokens));
  return {
    grant: {
      appliance: row.appliance,
      generation: row.generation,
      accessToken: new Secret(secrets.accessToken),
      refreshToken: new Secret(secrets.refreshToken),
      ...secrets.attributes,
      doubt: parseJson(v.nullable(doubt), where, row.doubt ?? 'null'),
      refused: parseJson(v.nullable(instant), where, row.refused ?? 'null'),
      distrusted: parseJson(v.nullable(instant), where, row.distrusted ?? 'null'),
    },
    attempt: parseJson(attempt, where, row.attempt ?? 'null'),
  };
}

/** A pairing as a row: what could plant or fetch a code is sealed, and the user code with it. Whose it is, is signed. */
export function pairingRow(pairing: Pairing, sealing: Sealing): PairingRow {
  const { id, appliance, nonce, portal, begun, lifetime, spentCodes, setback, device, round } = pairing;
  const { link: held, earlier, ...bare } = { link: null, earlier: undefined, ...pairing.step };
  const row = {
    id,
    appliance,
    sealed: sealing.seal(`pairings/${id}`, JSON.stringify({ nonce, link: held, earlier, device })),
    attributes: JSON.stringify({ portal, scope: pairing.scope, begun, lifetime, spentCodes, setback, round }),
    step: JSON.stringify(bare),
  };
  return { ...row, mac: sealing.sign('pairings', row) };
}

/** @throws Failure as {@link Sealing}, or `store_unreadable` */
export function readPairing(row: PairingRow, sealing: Sealing): Pairing {
  const where = `pairings/${row.id}`;
  const { nonce, device, link: held, ...links } = parseJson(secretPart, where, sealing.open(where, row.sealed));
  if (!sealing.isSigned('pairings', row))
    throw new Failure('store_unreadable', `${where} was changed by somebody else`);
  const bare = parseJson(step, where, row.step);
  const attributes = parseJson(pairingAttributes, where, row.attributes);
  const common = { id: row.id, appliance: row.appliance, nonce, device, ...attributes };
  if (bare.kind === 'ended') return { ...common, step: bare };
  if (bare.kind === 'asking') return { ...common, step: { ...bare, ...links } };
  if (held === null) throw new Failure('store_unreadable', `${where} has lost its link`);
  return { ...common, step: { ...bare, link: held, ...links } };
}
