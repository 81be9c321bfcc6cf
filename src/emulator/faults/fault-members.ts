import * as v from 'valibot';
import { integerInRange, numberInRange, positiveSeconds } from '../http/json-body.ts';

/** A field of the console's form, for a member of a fault. */
export interface FaultField {
  readonly label: string;
  /** `lines`: text of several lines; `headers`: one header a line. */
  readonly type: 'number' | 'text' | 'checkbox' | 'lines' | 'headers';
  /** What it holds at first. Such a field has to be filled in, unless `empty` says what its emptiness means. */
  readonly value?: string;
  /** An empty field is null; default: it is left out. */
  readonly empty?: 'null';
  readonly min?: number;
  readonly max?: number;
  /** What stands in the field while it is empty. */
  readonly hint?: string;
}

/** A member of a fault. Where `Input` has undefined, it may be left out. */
export interface FaultMember<Input> {
  /** Its values; a message of its own says what is allowed ("is …"). */
  readonly schema: v.GenericSchema<Input, unknown>;
  /** How the console asks for it; null: not at all, or in a way of its own. */
  readonly field: FaultField | null;
}

/** Members by their names in the library. */
export type FaultMembers = Readonly<Record<string, FaultMember<unknown>>>;

/** An object with these members. */
export type MemberInputs<M extends FaultMembers> = Inputs<M, Exclude<keyof M, Optional<M>>> &
  Partial<Inputs<M, Optional<M>>>;

type Inputs<M extends FaultMembers, Names extends keyof M> = { readonly [Name in Names]: InputOf<M[Name]> };
type Optional<M extends FaultMembers> = {
  [Name in keyof M]: undefined extends InputOf<M[Name]> ? Name : never;
}[keyof M];
type InputOf<M> = M extends FaultMember<infer Input> ? Input : never;

type FieldOptions = Pick<FaultField, 'label' | 'value' | 'empty' | 'hint'>;

/** A whole number in a range. */
export function integer(min: number, max: number, asked: FieldOptions): FaultMember<number> {
  return { schema: integerInRange(min, max), field: { ...asked, type: 'number', min, max } };
}

/** A number in a range. @param unit " of seconds", if it has one */
export function decimal(min: number, max: number, unit: string, asked: FieldOptions): FaultMember<number> {
  return { schema: numberInRange(min, max, unit), field: { ...asked, type: 'number', min, max } };
}

/** Seconds: above 0, up to a day. */
export function seconds(asked: FieldOptions): FaultMember<number> {
  const max = 86_400;
  return { schema: positiveSeconds(max), field: { ...asked, type: 'number', min: 0, max } };
}

/** A text that matches a pattern. @param allowed "is …" */
export function text(pattern: RegExp, allowed: string, asked: FieldOptions): FaultMember<string> {
  return { schema: v.message(v.pipe(v.string(), v.regex(pattern)), allowed), field: { ...asked, type: 'text' } };
}

/** Any text. */
export function multilineText(asked: FieldOptions): FaultMember<string> {
  return { schema: v.string(), field: { ...asked, type: 'lines' } };
}

/** Header fields by name, without those that say how long a message is. */
export function headers(asked: FieldOptions): FaultMember<Readonly<Record<string, string>>> {
  const name = /^(?!(?:content-length|transfer-encoding|trailer)$)[\w!#$%&'*+.^`|~-]{1,100}$/i;
  const value = /^[\t\x20-\x7e\x80-\xff]{0,4000}$/;
  const schema = v.record(
    v.pipe(v.string(), v.regex(name, 'are header names, without content-length, transfer-encoding and trailer')),
    v.message(v.pipe(v.string(), v.regex(value)), 'are header values'),
  );
  return { schema, field: { ...asked, type: 'headers' } };
}

/** Yes or no. */
export function flag(label: string): FaultMember<boolean> {
  return { schema: v.boolean(), field: { label, type: 'checkbox' } };
}

/** One of these. */
export function choice<const Value extends string | number>(...values: readonly Value[]): FaultMember<Value> {
  return { schema: v.picklist(values), field: null };
}

/** A member that may be null. */
export function nullable<Input>(member: FaultMember<Input>): FaultMember<Input | null> {
  return { ...member, schema: v.nullable(member.schema) };
}

/** A member that may be left out, and is this then. */
export function optional<Input>(member: FaultMember<Input>, otherwise: Input): FaultMember<Input | undefined> {
  return { ...member, schema: v.optional(member.schema, otherwise) };
}
