import * as v from 'valibot';
import { camelCase, type ParseResult, parseJson, renameKeys, snakeCase, validate } from '../http/json-body.ts';
import { COMMON_FAULT_MEMBERS, FAULT_KINDS, type FaultOptions } from './kinds.ts';

/** A fault that can't be; the message names the member, what was found and what is allowed. */
export class FaultError extends Error {
  override readonly name = 'FaultError';
}

/** What {@link FaultBody} lets through, all defaults filled in. */
type FaultMemberValues = Readonly<Record<string, unknown>>;

/** A fault as it comes over the API. */
export const FaultBody = faultSchema({});

/** A fault as the API shows it. */
export const FaultResponseBody = faultSchema({ id: v.string(), hits: v.number(), left: v.nullable(v.number()) });

/**
 * Reads a fault in the form of the API, from a command line.
 * @throws FaultError
 */
export function parseFault(text: string): FaultOptions {
  return unwrapFault(parseJson(text, FaultBody));
}

/**
 * Checks a fault of the library's and fills in the defaults.
 * @throws FaultError
 */
export function validateFault(fault: FaultOptions): FaultOptions {
  return unwrapFault(validate(toFaultResponseBody(fault), FaultBody));
}

/** The library's options that a body stands for: both follow from `FAULT_KINDS`, under other names. */
export function toFaultOptions(body: FaultMemberValues): FaultOptions {
  return renameKeys(body, camelCase) as FaultOptions;
}

/** A fault as the API has it. */
export function toFaultResponseBody(fault: FaultOptions): object {
  return renameKeys({ ...fault }, snakeCase);
}

/** Faults of every kind, with `more` members. */
function faultSchema(more: v.ObjectEntries): v.GenericSchema<unknown, FaultMemberValues> {
  const kinds = Object.entries(FAULT_KINDS).map(([name, { strikes, own }]) => {
    const members = Object.entries({ ...COMMON_FAULT_MEMBERS[strikes], ...own });
    const entries = Object.fromEntries(members.map(([member, { schema }]) => [snakeCase(member), schema]));
    return v.strictObject({ kind: v.literal(name), ...entries, ...more });
  });
  return v.variant('kind', kinds);
}

function unwrapFault(body: ParseResult<FaultMemberValues>): FaultOptions {
  if ('problem' in body) throw new FaultError(body.problem);
  return toFaultOptions(body.value);
}
