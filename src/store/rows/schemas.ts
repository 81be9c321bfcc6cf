import * as v from 'valibot';
import { checkClientId } from '../../core/appliances/appliance.ts';
import { Failure } from '../../core/failure.ts';
import { checkName } from '../../core/name.ts';
import { Secret } from '../../core/secret.ts';
import { instantSchema } from '../../system/instant-schema.ts';

/** The values of a row as one sealed JSON text. Without the key they can't be read, changed or moved to another row. */
export const sealed = v.string();

export const scope = v.nullable(v.string());

export const doubt = v.object({ kind: v.exactOptional(v.literal('copy')), lostAt: instantSchema, sends: v.number() });

/** A secret in the clear, inside of a sealed value. */
export const secret = v.pipe(
  v.string(),
  v.transform((value) => new Secret(value)),
);

/** A grant's tokens and their attributes. */
export const storedTokens = {
  accessToken: secret,
  refreshToken: v.nullable(secret),
  scope,
  lifetime: v.number(),
  obtained: instantSchema,
  portalTime: v.nullable(v.number()),
  requestedScope: scope,
  account: v.exactOptional(v.string()),
  issuer: v.object({ origin: v.string(), clientId: v.string(), name: v.string() }),
  idToken: v.exactOptional(secret),
  login: v.exactOptional(
    v.object({
      pairing: v.string(),
      at: instantSchema,
      portalTime: v.nullable(v.number()),
      refreshTokenLifetime: v.nullable(v.number()),
    }),
  ),
  refreshTokenLifetime: v.exactOptional(v.number()),
};

/** A replacer for `JSON.stringify`: the result has secrets in the clear, so the caller must seal or encrypt it. */
export function revealSecret(this: Readonly<Record<string, unknown>>, name: string, value: unknown): unknown {
  const original = this[name];
  return original instanceof Secret ? original.reveal() : value;
}

export const applianceName = v.pipe(v.string(), v.check(isAcceptedBy((text) => checkName('appliance', text))));

export const connectionName = v.pipe(v.string(), v.check(isAcceptedBy((text) => checkName('connection', text))));

export const clientId = v.pipe(v.string(), v.check(isAcceptedBy(checkClientId)));

/** Public keys. A private or symmetric key among them means damage or tampering. */
const publicKeys = v.pipe(
  v.array(
    v.pipe(
      v.record(v.string(), v.unknown()),
      v.check((key) => typeof key['kty'] === 'string' && key['kty'] !== 'oct' && !('d' in key) && !('k' in key)),
    ),
  ),
  v.minLength(1),
);

/** The mark of a damaged row, in a backup: a restore must not make the row valid. */
export const damaged = v.exactOptional(v.literal(true));

/** The attributes of a connection, except its name, portal and scope. */
export const connectionAttributes = { title: v.string(), origin: v.picklist(['implicit', 'added', 'declared']) };

/** The attributes of an appliance, except its names and its connection. */
export const applianceAttributes = {
  title: v.string(),
  credentials: v.variant('kind', [
    v.object({ kind: v.literal('secret'), hash: v.string() }),
    v.object({ kind: v.literal('keys'), keys: publicKeys }),
    v.object({ kind: v.literal('none'), damaged }),
  ]),
  origin: v.picklist(['added', 'registered', 'declared']),
  waiting: v.nullable(v.object({ since: instantSchema, from: v.string() })),
  softwareId: v.nullable(v.string()),
  more: v.exactOptional(v.array(v.string())),
  ignoresScope: v.exactOptional(v.literal(true)),
};

/**
 * Parses a JSON text of the row `where`.
 * @throws Failure `store_unreadable`
 */
export function parseJson<const Schema extends v.GenericSchema>(
  schema: Schema,
  where: string,
  text: string,
): v.InferOutput<Schema> {
  try {
    return v.parse(schema, JSON.parse(text));
  } catch {
    // Without the cause: a parser's message quotes the text, which may be a token.
    throw new Failure('store_unreadable', `${where} is damaged: restore a copy of the state directory`);
  }
}

/** The result of `read`; null if it throws a Failure. */
export function nullIfDamaged<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof Failure) return null;
    throw error;
  }
}

/** A column that may be null, as JSON. */
export function jsonOrNull(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

function isAcceptedBy(check: (text: string) => string): (text: string) => boolean {
  return (text) => {
    try {
      return check(text) === text;
    } catch {
      return false;
    }
  };
}

/**
 * Forgets that rows are damaged if a read has not found them.
 * @param damaged the keys of the damaged rows of a table
 * @param asked the keys that were asked for; null for all
 * @param found the keys of the rows that were found
 */
export function unmarkMissing(damaged: Set<string>, asked: ReadonlySet<string> | null, found: readonly string[]): void {
  const existing = new Set(found);
  for (const key of damaged) if ((asked?.has(key) ?? true) && !existing.has(key)) damaged.delete(key);
}
