import * as v from 'valibot';
import { integerInRange, numberInRange, positiveSeconds } from '../json.ts';

/** A field of the console's form for a member of a fault. */
export interface FaultField {
  readonly label: string;
  /** `lines`: text of several lines; `headers`: one header per line. */
  readonly type: 'number' | 'text' | 'checkbox' | 'lines' | 'headers';
  /** Initial value. A field that has one is required, unless `empty` defines the meaning of an empty field. */
  readonly value?: string;
  /** An empty field means null. Default: the member is left out. */
  readonly empty?: 'null';
  readonly min?: number;
  readonly max?: number;
  /** Placeholder of the empty field. */
  readonly hint?: string;
}

/** A member of a fault. It is optional if `Input` includes undefined. */
export interface FaultMember<Input> {
  /** Its values. A custom message completes "must be …". */
  readonly schema: v.GenericSchema<Input, unknown>;
  /** Its field on the console; null: none, or a special control. */
  readonly field: FaultField | null;
}

/** Members by their library names. */
export type FaultMembers = Readonly<Record<string, FaultMember<unknown>>>;

/** The type of an object with these members. */
export type MemberInputs<M extends FaultMembers> = Inputs<M, Exclude<keyof M, Optional<M>>> &
  Partial<Inputs<M, Optional<M>>>;

type Inputs<M extends FaultMembers, Names extends keyof M> = { readonly [Name in Names]: InputOf<M[Name]> };
type Optional<M extends FaultMembers> = {
  [Name in keyof M]: undefined extends InputOf<M[Name]> ? Name : never;
}[keyof M];
type InputOf<M> = M extends FaultMember<infer Input> ? Input : never;

type FieldOptions = Pick<FaultField, 'label' | 'value' | 'empty' | 'hint'>;

/** A whole number in a range. */
export function integer(min: number, max: number, options: FieldOptions): FaultMember<number> {
  return { schema: integerInRange(min, max), field: { ...options, type: 'number', min, max } };
}

/** A number in a range. @param unit such as " of seconds", or empty */
export function decimal(min: number, max: number, unit: string, options: FieldOptions): FaultMember<number> {
  return { schema: numberInRange(min, max, unit), field: { ...options, type: 'number', min, max } };
}

/** A number of seconds above 0, at most a day. */
export function seconds(options: FieldOptions): FaultMember<number> {
  const max = 86_400;
  return { schema: positiveSeconds(max), field: { ...options, type: 'number', min: 0, max } };
}

/** A text that matches a pattern. @param allowed completes "must be …" in the error message */
export function text(pattern: RegExp, allowed: string, options: FieldOptions): FaultMember<string> {
  return { schema: v.message(v.pipe(v.string(), v.regex(pattern)), allowed), field: { ...options, type: 'text' } };
}

/** Any text. */
export function multilineText(options: FieldOptions): FaultMember<string> {
  return { schema: v.string(), field: { ...options, type: 'lines' } };
}

/** Header fields by name, except those that frame the message. */
export function headers(options: FieldOptions): FaultMember<Readonly<Record<string, string>>> {
  const name = /^(?!(?:content-length|transfer-encoding|trailer)$)[\w!#$%&'*+.^`|~-]{1,100}$/i;
  const value = /^[\t\x20-\x7e\x80-\xff]{0,4000}$/;
  const schema = v.record(
    v.pipe(v.string(), v.regex(name, 'header names other than content-length, transfer-encoding and trailer')),
    v.message(v.pipe(v.string(), v.regex(value)), 'header values'),
  );
  return { schema, field: { ...options, type: 'headers' } };
}

/** True or false. */
export function flag(label: string): FaultMember<boolean> {
  return { schema: v.boolean(), field: { label, type: 'checkbox' } };
}

/** One of these values. */
export function choice<const Value extends string | number>(...values: readonly Value[]): FaultMember<Value> {
  return { schema: v.picklist(values), field: null };
}

/** A member that may be null. */
export function nullable<Input>(member: FaultMember<Input>): FaultMember<Input | null> {
  return { ...member, schema: v.nullable(member.schema) };
}

/** An optional member with a default. */
export function optional<Input>(member: FaultMember<Input>, fallback: Input): FaultMember<Input | undefined> {
  return { ...member, schema: v.optional(member.schema, fallback) };
}
