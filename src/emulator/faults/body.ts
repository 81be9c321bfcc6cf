import type { FastifyRequest } from 'fastify';
import * as v from 'valibot';
import { type Checked, camelCase, check, parseJson, readJson, renamed, snakeCase } from '../http/json-body.ts';
import { COMMON_MEMBERS, FAULT_KINDS, type FaultOptions } from './kinds.ts';

/** A fault that can't be; the message names the member, what was found and what is allowed. */
export class FaultError extends Error {
  override readonly name = 'FaultError';
}

/** A fault as it comes over the API. */
export const FaultBody = schemaWith({});

/** A fault as the API shows it. */
export const FaultAnswer = schemaWith({ id: v.string(), hits: v.number(), left: v.nullable(v.number()) });

/** Reads a fault from a request to the API; all defaults are filled in. */
export function readFault(request: FastifyRequest): Checked<FaultOptions> {
  return asOptions(readJson(request, FaultBody));
}

/**
 * Reads a fault in the form of the API, from a command line.
 * @throws FaultError
 */
export function parseFault(text: string): FaultOptions {
  return orThrow(asOptions(parseJson(text, FaultBody)));
}

/**
 * Checks a fault of the library's and fills in the defaults.
 * @throws FaultError
 */
export function checkedFault(fault: FaultOptions): FaultOptions {
  return orThrow(asOptions(check(faultAnswer(fault), FaultBody)));
}

/** A fault as the API has it. */
export function faultAnswer(fault: FaultOptions): object {
  return renamed({ ...fault }, snakeCase);
}

/** Faults of every kind, with `more` members. */
function schemaWith(more: v.ObjectEntries): v.GenericSchema<unknown, Readonly<Record<string, unknown>>> {
  const kinds = Object.entries(FAULT_KINDS).map(([name, { strikes, own }]) => {
    const members = Object.entries({ ...COMMON_MEMBERS[strikes], ...own });
    const entries = Object.fromEntries(members.map(([member, { schema }]) => [snakeCase(member), schema]));
    return v.strictObject({ kind: v.literal(name), ...entries, ...more });
  });
  return v.variant('kind', kinds);
}

/** What the schema lets through are the options under other names: both follow from `FAULT_KINDS`. */
function asOptions(body: Checked<Readonly<Record<string, unknown>>>): Checked<FaultOptions> {
  return 'problem' in body ? body : { value: renamed(body.value, camelCase) as FaultOptions };
}

function orThrow(fault: Checked<FaultOptions>): FaultOptions {
  if ('problem' in fault) throw new FaultError(fault.problem);
  return fault.value;
}
