import * as v from 'valibot';
import { checkClientId, checkName } from '../../core/appliances/appliance.ts';
import { Failure } from '../../core/failure.ts';
import { instant } from '../../system/instant-schema.ts';

/** A `RegistrantAddress` (src/core/appliances/appliance.ts). */
export const registrantAddress = v.object({ address: v.string(), shares: v.array(v.string()) });

export const scope = v.nullable(v.string());

export const doubt = v.object({ kind: v.exactOptional(v.literal('copy')), lostAt: instant, sends: v.number() });

/** A `PortalIdentity` (src/core/portal.ts). */
const portalIdentity = v.object({
  origin: v.string(),
  clientId: v.string(),
  name: v.string(),
});

/** What is known of a grant's tokens, beside them. */
export const grantAttributes = {
  scope,
  lifetime: v.number(),
  obtained: instant,
  portalTime: v.nullable(v.number()),
  asked: scope,
  account: v.exactOptional(v.string()),
  givenBy: portalIdentity,
};

export const applianceName = v.pipe(v.string(), v.check(passes(checkName)));

export const clientId = v.pipe(v.string(), v.check(passes(checkClientId)));

export const origin = v.picklist(['added', 'registered', 'declared']);

/** Public keys; a private or a symmetric one among them is damage, or worse. */
export const publicKeys = v.pipe(
  v.array(
    v.pipe(
      v.record(v.string(), v.unknown()),
      v.check((key) => typeof key['kty'] === 'string' && key['kty'] !== 'oct' && !('d' in key) && !('k' in key)),
    ),
  ),
  v.minLength(1),
);

/**
 * Reads a JSON text of the row `where`.
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
    // Without the cause: a parser's message quotes what it could not read, and that may be a token.
    throw new Failure('store_unreadable', `${where} is damaged: put back a copy of the state directory`);
  }
}

/** A column that may be null, as JSON. */
export function jsonOrNull(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

function passes(check: (text: string) => string): (text: string) => boolean {
  return (text) => {
    try {
      return check(text) === text;
    } catch {
      return false;
    }
  };
}
