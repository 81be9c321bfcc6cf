import * as v from 'valibot';
import { PAIRING_FAILURE_REASONS, type Pairing } from '../../core/pairings/pairing.ts';
import { instantSchema } from '../../system/instant-schema.ts';
import type { Sealing } from '../keys/sealing.ts';
import { parseJson, revealSecret, scope, sealed, secret } from './schemas.ts';

const link = v.variant('kind', [
  v.object({
    kind: v.literal('poll'),
    authorizeUrl: v.string(),
    codeUrl: v.string(),
    tokenUrl: v.string(),
    redirect: v.nullable(v.string()),
  }),
  v.object({
    kind: v.literal('redirect'),
    authorizeUrl: v.string(),
    redirect: v.string(),
    state: v.string(),
    verifier: v.nullable(secret),
    issuer: v.nullable(v.string()),
    requiresIssuer: v.boolean(),
  }),
  v.object({
    kind: v.literal('device'),
    authorizeUrl: v.string(),
    redirect: v.null(),
    userCode: v.string(),
    containsUserCode: v.boolean(),
    deviceCode: secret,
    verifier: v.nullable(secret),
    interval: v.number(),
    begun: instantSchema,
    lifetime: v.number(),
  }),
]);

const codes = { codeHash: v.string(), userCode: v.string() };
const links = { link, earlier: v.exactOptional(v.array(link)) };

/** Sealed, because these values could be used to inject or to fetch an authorization code. */
const sealedAttributes = v.object({
  portal: v.string(),
  scope,
  nonce: v.string(),
  begun: instantSchema,
  lifetime: v.number(),
  spentCodes: v.array(v.string()),
  answeredStates: v.exactOptional(v.array(v.string())),
  lastFailure: v.nullable(v.picklist(['answer_lost', 'code_refused', 'portal_rejected', 'refused_by_user'])),
  device: v.nullable(
    v.object({
      appliance: v.string(),
      ...codes,
      superseded: v.exactOptional(v.array(v.object(codes))),
      shared: v.exactOptional(v.literal(true)),
    }),
  ),
  batch: v.exactOptional(v.string()),
  user: v.exactOptional(v.string()),
  failureDetail: v.exactOptional(v.string()),
  failed: v.exactOptional(instantSchema),
  step: v.variant('kind', [
    v.object({ kind: v.literal('asking'), earlier: links.earlier }),
    v.object({ kind: v.literal('waiting'), ...links }),
    v.object({ kind: v.literal('exchanging'), ...links, since: instantSchema }),
    v.object({
      kind: v.literal('ended'),
      result: v.variant('kind', [
        v.object({ kind: v.literal('paired'), scope }),
        v.object({ kind: v.literal('failed'), reason: v.picklist(PAIRING_FAILURE_REASONS) }),
      ]),
    }),
  ]),
});

/** A row of `pairings`; `number` is the order in which they began. */
export const pairingRow = v.object({
  number: v.number(),
  id: v.string(),
  connection: v.string(),
  /** The kind of its step, only for queries: the sealed step is authoritative. */
  step: v.string(),
  sealed,
});

export type PairingRow = v.InferOutput<typeof pairingRow>;

/** The identity that a row is sealed with: this pairing of this connection. */
export function pairingRowIdentity({ id, connection }: Pick<PairingRow, 'id' | 'connection'>): string {
  return `pairings/${id}/${connection}`;
}

/** Opens a row. @throws Failure as {@link Sealing}, or `store_unreadable` if its content is invalid */
export function readPairing(row: Pick<PairingRow, 'id' | 'connection' | 'sealed'>, sealing: Sealing): Pairing {
  const where = pairingRowIdentity(row);
  const { id, connection } = row;
  return { id, connection, ...parseJson(sealedAttributes, where, sealing.open(where, row.sealed)) };
}

/** A pairing as a row, without the number that its table gives it. */
export function toPairingRow(pairing: Pairing, sealing: Sealing): Omit<PairingRow, 'number'> {
  const { id, connection, ...rest } = pairing;
  const content = sealing.seal(pairingRowIdentity(pairing), JSON.stringify(rest, revealSecret));
  return { id, connection, step: pairing.step.kind, sealed: content };
}

/** How many ended pairings of a connection are kept, so that their result page can be shown again. */
export const MAX_ENDED_PAIRINGS = 5;
