import * as v from 'valibot';
import type { Appliance, ClientCredentials } from '../core/appliance.ts';
import { Failure } from '../core/failure.ts';
import type { Invite } from '../core/registration.ts';
import type { Session } from '../core/session.ts';
import { readPublicKeys } from '../system/public-keys.ts';
import { applianceName, clientId, instant, jsonOrNull, origin, parseJson, publicKeys, scope } from './schemas.ts';

const text = v.string();
const optional = v.nullable(v.string());
const keySet = v.pipe(
  v.object({ keys: publicKeys }),
  v.check((set) => readPublicKeys(set).kind === 'keys'),
);

/** A row of `appliances`; one of schema 1 has the first five columns. */
export const applianceRow = v.pipe(
  v.object({
    id: v.pipe(text, v.uuid()),
    name: applianceName,
    scope,
    portal: text,
    /** Empty where there is none. */
    secret_hash: text,
    client_id: v.exactOptional(text),
    /** A JWK Set (RFC 7517, 5); where there is one, it counts. */
    jwks: v.exactOptional(optional, null),
    origin: v.exactOptional(text, 'added'),
    waiting: v.exactOptional(optional, null),
    software_id: v.exactOptional(optional, null),
  }),
  v.transform((row) => ({ ...row, client_id: row.client_id ?? row.id })),
);

/** A row of `sessions`; `number` is the order in which they came. */
export const sessionRow = v.object({ number: v.number(), hash: text, appliance: text, device: text, begun: text });

/** A row of `invites`. */
export const inviteRow = v.object({
  hash: text,
  name: optional,
  scope,
  portal: text,
  begun: text,
  lifetime: v.number(),
});

export type ApplianceRow = v.InferOutput<typeof applianceRow>;
export type SessionRow = v.InferOutput<typeof sessionRow>;
export type InviteRow = v.InferOutput<typeof inviteRow>;

/** The columns of `appliances`, and the values for them as {@link applianceValues} gives them. */
export const APPLIANCE_COLUMNS = 'id, name, scope, portal, secret_hash, client_id, jwks, origin, waiting, software_id';
export const APPLIANCE_PLACES = '?, ?, ?, ?, ?, ?, ?, ?, ?, ?';

/** An appliance in the order of {@link APPLIANCE_COLUMNS}. */
export function applianceValues(appliance: Appliance): unknown[] {
  const { id, name, portal, credentials, waitingSince, softwareId } = appliance;
  const hash = credentials.kind === 'secret' ? credentials.hash : '';
  const jwks = credentials.kind === 'keys' ? JSON.stringify({ keys: credentials.keys }) : null;
  return [
    ...[id, name, appliance.scope, portal, hash],
    ...[appliance.clientId, jwks, appliance.origin, jsonOrNull(waitingSince), softwareId],
  ];
}

/** @throws Failure `store_unreadable` where its keys, or how far it may be trusted, make no sense */
export function readAppliance(row: ApplianceRow): Appliance {
  const where = `appliances/${row.id}`;
  return {
    ...bare(row),
    clientId: parsed(clientId, where, row.client_id),
    credentials: credentialsOf(row, where),
    origin: parsed(origin, where, row.origin),
    waitingSince: parseJson(v.nullable(instant), where, row.waiting ?? 'null'),
  };
}

/** An appliance that can't be read: it keeps its place and its grant, and can't prove who it is. */
export function unreadableAppliance(row: ApplianceRow): Appliance {
  return { ...bare(row), clientId: row.client_id, credentials: { kind: 'none' }, origin: 'added', waitingSince: null };
}

function bare({ id, name, scope, portal, software_id }: ApplianceRow) {
  return { id, name, scope, portal, softwareId: software_id };
}

function credentialsOf({ secret_hash, jwks }: ApplianceRow, where: string): ClientCredentials {
  if (jwks !== null) return { kind: 'keys', keys: parseJson(keySet, where, jwks).keys };
  return secret_hash === '' ? { kind: 'none' } : { kind: 'secret', hash: secret_hash };
}

function parsed<const Schema extends v.GenericSchema>(
  schema: Schema,
  where: string,
  value: unknown,
): v.InferOutput<Schema> {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  throw new Failure('store_unreadable', `${where} is damaged: put back a copy of the state directory`);
}

/** A session counts by its hash: one whose beginning makes no sense began long ago. */
export function readSession({ hash, appliance, device, begun }: Omit<SessionRow, 'number'>): Session {
  try {
    return { hash, appliance, device, begun: parseJson(instant, `sessions/${appliance}`, begun) };
  } catch {
    return { hash, appliance, device, begun: { boot: '', uptime: 0, wall: 0 } };
  }
}

/** @throws Failure `store_unreadable` */
export function readInvite({ hash, name, scope, portal, begun, lifetime }: InviteRow): Invite {
  return { hash, name, scope, portal, begun: parseJson(instant, 'invites', begun), lifetime };
}
