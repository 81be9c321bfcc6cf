import * as v from 'valibot';
import { type Checked, camelCase, check, parseJson, renamed, snakeCase } from '../http/json-body.ts';
import { COMMON_MEMBERS, FAULT_KINDS, type FaultOptions } from './kinds.ts';

/** A fault that can't be; the message names the member, what was found and what is allowed. */
export class FaultError extends Error {
  override readonly name = 'FaultError';
}

/** What {@link FaultBody} lets through, all defaults filled in. */
type Body = Readonly<Record<string, unknown>>;

/** A fault as it comes over the API. */
export const FaultBody = schemaWith({});

/** A fault as the API shows it. */
export const FaultAnswer = schemaWith({ id: v.string(), hits: v.number(), left: v.nullable(v.number()) });

/**
 * Reads a fault in the form of the API, from a command line.
 * @throws FaultError
 */
export function parseFault(text: string): FaultOptions {
  return orThrow(parseJson(text, FaultBody));
}

/**
 * Checks a fault of the library's and fills in the defaults.
 * @throws FaultError
 */
export function checkedFault(fault: FaultOptions): FaultOptions {
  return orThrow(check(faultAnswer(fault), FaultBody));
}

/** The library's options that a body stands for: both follow from `FAULT_KINDS`, under other names. */
export function faultFrom(body: Body): FaultOptions {
  return renamed(body, camelCase) as FaultOptions;
}

/** A fault as the API has it. */
export function faultAnswer(fault: FaultOptions): object {
  return renamed({ ...fault }, snakeCase);
}

/** Faults of every kind, with `more` members. */
function schemaWith(more: v.ObjectEntries): v.GenericSchema<unknown, Body> {
  const kinds = Object.entries(FAULT_KINDS).map(([name, { strikes, own }]) => {
    const members = Object.entries({ ...COMMON_MEMBERS[strikes], ...own });
    const entries = Object.fromEntries(members.map(([member, { schema }]) => [snakeCase(member), schema]));
    return v.strictObject({ kind: v.literal(name), ...entries, ...more });
  });
  return v.variant('kind', kinds);
}

function orThrow(body: Checked<Body>): FaultOptions {
  if ('problem' in body) throw new FaultError(body.problem);
  return faultFrom(body.value);
}
