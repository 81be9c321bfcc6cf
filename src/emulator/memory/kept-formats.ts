import * as v from 'valibot';
import type { AuthenticationNotes, GrantNotes } from '../audit/client-audit.ts';
import type { AuthorizationCode } from '../oauth/authorization-codes.ts';
import type { Grant } from '../oauth/grants.ts';
import { type HelperRun, newPolls } from '../oauth/helper-runs.ts';

/** How something is written into the state file, and read from it. */
export interface Format<T> {
  write(value: T): string;
  /** @throws ValiError where it is damaged */
  read(text: string): T;
}

const text = v.string();
const orNull = v.nullable(v.string());
const number = v.number();

const Claims = v.strictObject({ grantId: text, generation: number, issuedAt: number, lifetime: number });

const GrantRow = v.strictObject({
  id: text,
  clientId: text,
  user: text,
  scope: orNull,
  createdAt: number,
  refreshedAt: number,
  generation: number,
  revoked: v.boolean(),
  accessFrom: number,
  presented: v.array(number),
  successors: v.array(v.strictTuple([number, Claims])),
});

export const grantFormat: Format<Grant> = {
  write({ inFlight: _, presented, successors, ...grant }) {
    return JSON.stringify({ ...grant, presented: [...presented], successors: [...successors] });
  },
  read(row) {
    const { presented, successors, ...grant } = v.parse(GrantRow, JSON.parse(row));
    return { ...grant, inFlight: 0, presented: new Set(presented), successors: new Map(successors) };
  },
};

const CodeRow = v.strictObject({
  clientId: text,
  user: text,
  scope: orNull,
  stateId: orNull,
  redirectUri: orNull,
  value: text,
  issuedAt: number,
  grantId: orNull,
});

export const codeFormat: Format<AuthorizationCode> = asItIs(CodeRow);

const RunRow = v.strictObject({
  state: v.strictObject({ id: text, clientId: text, redirectUrl: orNull, expiresAt: number }),
  code: orNull,
  done: v.boolean(),
  login: v.nullable(v.strictObject({ jwt: text, openedAt: number })),
});

/** Without the polls. */
export const runFormat: Format<HelperRun> = {
  write: ({ state, code, done, login }) => JSON.stringify({ state, code, done, login }),
  read: (row) => ({ ...v.parse(RunRow, JSON.parse(row)), polls: newPolls() }),
};

const NotesRow = v.strictObject({
  client: text,
  grant: text,
  reused: number,
  overlapping: number,
  early: number,
  earliest: v.nullable(number),
  codeRepeated: number,
});

/** JSON has no infinity, which is what `earliest` is before the first early refresh. */
export const notesFormat: Format<GrantNotes> = {
  write: (notes) => JSON.stringify(notes),
  read(row) {
    const { earliest, ...notes } = v.parse(NotesRow, JSON.parse(row));
    return { ...notes, earliest: earliest ?? Number.POSITIVE_INFINITY };
  },
};

const AuthenticationsRow = v.strictObject({
  client: orNull,
  way: v.picklist(['form', 'authorization header', 'none']),
  count: number,
});

export const authenticationsFormat: Format<AuthenticationNotes> = asItIs(AuthenticationsRow);

function asItIs<T>(schema: v.GenericSchema<unknown, T>): Format<T> {
  return { write: (value) => JSON.stringify(value), read: (row) => v.parse(schema, JSON.parse(row)) };
}
