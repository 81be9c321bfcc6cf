import * as v from 'valibot';
import {
  camelCase,
  choiceMessage,
  exactObject,
  type ParseResult,
  parseJson,
  renameKeys,
  snakeCase,
  validate,
} from '../json.ts';
import { COMMON_FAULT_MEMBERS, FAULT_KINDS, type FaultOptions } from './kinds.ts';

/** An invalid fault. The message names the member, the value found and the values allowed. */
export class FaultError extends Error {
  override readonly name = 'FaultError';
}

/** The members of a fault after parsing by {@link FaultBody}, with all defaults. */
type FaultMemberValues = Readonly<Record<string, unknown>>;

/** A fault in the library's form. */
const Fault = faultSchema((name) => name);

/** A fault in an API request. */
export const FaultBody = faultSchema(snakeCase);

/** A fault in an API response. */
export const FaultResponseBody = faultSchema(snakeCase, {
  id: v.string(),
  hits: v.number(),
  left: v.nullable(v.number()),
});

/**
 * Parses a fault in the JSON form of the API.
 * @throws FaultError if it is invalid
 */
export function parseFault(text: string): FaultOptions {
  return toFaultOptions(unwrapFault(parseJson(text, FaultBody)));
}

/**
 * Checks a fault in the library's form and fills in the defaults.
 * @throws FaultError if it is invalid
 */
export function validateFault(fault: FaultOptions): FaultOptions {
  return unwrapFault(validate(fault, Fault, 'argument')) as FaultOptions;
}

/** Converts a fault to the library's form. Both forms derive from `FAULT_KINDS`, with different spelling. */
export function toFaultOptions(body: FaultMemberValues): FaultOptions {
  return renameKeys(body, camelCase) as FaultOptions;
}

/** Converts a fault to the API's form. */
export function toFaultResponseBody(fault: FaultOptions): object {
  return renameKeys({ ...fault }, snakeCase);
}

/**
 * The schema of faults of all kinds.
 * @param spell how it spells the library's names of members
 * @param extra further members
 */
function faultSchema(
  spell: (name: string) => string,
  extra: v.ObjectEntries = {},
): v.GenericSchema<unknown, FaultMemberValues> {
  const kinds = Object.entries(FAULT_KINDS).map(([name, { target, own }]) => {
    const members = Object.entries({ ...COMMON_FAULT_MEMBERS[target], ...own });
    const entries = Object.fromEntries(members.map(([member, schema]) => [spell(member), schema]));
    return exactObject({ kind: v.literal(name), ...entries, ...extra });
  });
  return v.variant('kind', kinds, choiceMessage(Object.keys(FAULT_KINDS)));
}

function unwrapFault(fault: ParseResult<FaultMemberValues>): FaultMemberValues {
  if ('problem' in fault) throw new FaultError(fault.problem);
  return fault.value;
}
