import * as v from 'valibot';
import { choiceOf, exactObject, integerInRange, numberInRange, positiveSeconds, validate } from '../json.ts';
import type { SettingDefinition, TextSyntax } from './definitions.ts';
import { REQUIREMENT } from './requirements.ts';
import { SETTINGS, type SettingOptions, type Settings } from './settings.ts';

/** An invalid option. The message names it, the value found and the values allowed. */
export class OptionError extends Error {
  override readonly name = 'OptionError';
}

/** In seconds, so that the current time plus all lifetimes fits into a JavaScript timestamp. */
const MAX_SETTING_SECONDS = 1e9;

const MAX_TEXT_LENGTH = 1000;
/** A scope: names with one space between them (RFC 6749, 3.3). */
export const SCOPE = /^[\x21\x23-\x5B\x5D-\x7E]+( [\x21\x23-\x5B\x5D-\x7E]+)*$/;
const REQUIREMENTS = new RegExp(`^${REQUIREMENT.source}( ${REQUIREMENT.source})*$`);

/** The schema of each setting, by name. The message of an issue completes "must be …". */
export const settingSchemas: Readonly<Record<string, v.GenericSchema>> = Object.fromEntries(
  Object.entries(SETTINGS).map(([name, declared]) => [name, settingSchema(declared)]),
);

/** The settings that a change may have. */
export const CHANGE: Readonly<Record<string, v.GenericSchema>> = Object.fromEntries(
  Object.entries(settingSchemas).map(([name, schema]) => [name, v.optional(schema)]),
);

const INITIAL_SETTINGS = Object.fromEntries(
  Object.entries(SETTINGS).map(([name, { initial }]) => [name, initial]),
) as Settings;

/**
 * The settings after a change.
 * @param change by the library's names; unknown ones are rejected
 * @param before default: the initial values
 * @throws OptionError
 */
export function applySettingsChange(change: object, before: Settings = INITIAL_SETTINGS): Settings {
  checkMembers(change, CHANGE);
  const defined = Object.entries(change).filter(([, value]) => value !== undefined);
  return { ...before, ...Object.fromEntries(defined) };
}

/**
 * Checks an object of options by the schemas of its members. Plain JavaScript has no compiler that does, and a
 * misspelled option would silently have no effect.
 * @param prefix text before the name in the message, such as `clients: `
 * @throws OptionError
 */
export function checkMembers<Members extends Readonly<Record<string, v.GenericSchema>>>(
  value: object,
  members: Members,
  prefix = '',
): v.InferOutput<v.StrictObjectSchema<Members, undefined>> {
  const parsed = validate(value, exactObject(members), 'argument');
  if ('problem' in parsed) throw new OptionError(`${prefix}${parsed.problem}`);
  return parsed.value;
}

/** Only the settings of an object that has more members. */
export function pickSettings<Holder extends SettingOptions>(
  holder: Holder,
): Pick<Holder, keyof Holder & keyof Settings> {
  const own = Object.entries(holder).filter(([name]) => Object.hasOwn(SETTINGS, name));
  return Object.fromEntries(own) as Pick<Holder, keyof Holder & keyof Settings>;
}

function settingSchema({ values, initial }: SettingDefinition<unknown>): v.GenericSchema {
  switch (values.kind) {
    case 'boolean':
      return v.boolean();
    case 'choice':
      return choiceOf(values.choices);
    case 'count':
      return integerInRange(0, MAX_SETTING_SECONDS);
    case 'seconds': {
      const schema = secondsSchema(values.range);
      return initial === null ? v.nullable(schema) : schema;
    }
    case 'regular expression':
      return v.nullable(
        v.message(
          v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.check(isRegularExpression)),
          'a JavaScript regular expression of 1 to 200 characters',
        ),
      );
    case 'text':
      return v.nullable(textSchema(values.syntax));
  }
}

function textSchema(syntax: TextSyntax): v.GenericSchema {
  const schema = (pattern: RegExp) => v.pipe(v.string(), v.maxLength(MAX_TEXT_LENGTH), v.regex(pattern));
  if (syntax === 'name') return v.message(schema(/^[\x21\x23-\x5B\x5D-\x7E]+$/), 'a name without a space');
  return syntax === 'scopes'
    ? v.message(schema(SCOPE), 'names with one space between them')
    : v.message(schema(REQUIREMENTS), 'OPERATION:NAME or OPERATION:NAME=VALUE, with one space between two of them');
}

function secondsSchema(range: 'above 0' | 'from 0' | 'whole'): v.GenericSchema {
  if (range === 'whole') return integerInRange(1, MAX_SETTING_SECONDS);
  return range === 'from 0'
    ? numberInRange(0, MAX_SETTING_SECONDS, ' of seconds')
    : positiveSeconds(MAX_SETTING_SECONDS);
}

function isRegularExpression(text: string): boolean {
  try {
    return new RegExp(text, 'u') !== null;
  } catch {
    return false;
  }
}
