import * as v from 'valibot';
import { didYouMean } from '../../system/did-you-mean.ts';
import { integerInRange, numberInRange, positiveSeconds, validate } from '../json.ts';
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
/** RFC 6749, 3.3. */
const SCOPES = /^[\x21\x23-\x5B\x5D-\x7E]+( [\x21\x23-\x5B\x5D-\x7E]+)*$/;
const REQUIREMENTS = new RegExp(`^${REQUIREMENT.source}( ${REQUIREMENT.source})*$`);

/** The schema of each setting, by name. The message of an issue completes "must be …". */
export const settingSchemas: Readonly<Record<string, v.GenericSchema>> = Object.fromEntries(
  Object.entries(SETTINGS).map(([name, declared]) => [name, settingSchema(declared)]),
);

const SettingsSchema = v.strictObject(settingSchemas);

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
  rejectUnknownKeys(change, SETTINGS);
  const defined = Object.entries(change).filter(([, value]) => value !== undefined);
  const parsed = v.safeParse(SettingsSchema, { ...before, ...Object.fromEntries(defined) });
  if (parsed.success) return parsed.output as Settings;
  const [issue] = parsed.issues;
  throw new OptionError(`${v.getDotPath(issue)}: must be ${issue.message} (found ${formatFound(issue.input)})`);
}

/**
 * Rejects unknown names. Plain JavaScript has no compiler that does, and a misspelled option would silently have no
 * effect.
 * @param known an object whose keys are the known names
 * @param prefix text before the name in the message, such as `clients: `
 * @throws OptionError
 */
export function rejectUnknownKeys(options: object, known: object, prefix = ''): void {
  const names = Object.keys(known);
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const suggestion = didYouMean(unknown, names);
  throw new OptionError(
    `${prefix}${unknown.slice(0, 100)}: unknown option${suggestion}; allowed options: ${names.join(', ')}`,
  );
}

/**
 * Checks an object of options by the schemas of its members.
 * @param prefix text before the name in the message
 * @throws OptionError
 */
export function checkMembers<Members extends Readonly<Record<string, v.GenericSchema>>>(
  value: object,
  members: Members,
  prefix = '',
): v.InferOutput<v.StrictObjectSchema<Members, undefined>> {
  rejectUnknownKeys(value, members, prefix);
  const parsed = validate(value, v.strictObject(members));
  if ('problem' in parsed) throw new OptionError(`${prefix}${parsed.problem}`);
  return parsed.value;
}

/**
 * Checks that an argument is one of some texts.
 * @throws OptionError
 */
export function checkChoice(name: string, value: string, choices: readonly string[]): void {
  if (!choices.includes(value))
    throw new OptionError(`${name}: must be ${choices.join(' or ')} (found ${formatFound(value)})`);
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
      return v.boolean('true or false');
    case 'choice': {
      const choices = Object.keys(values.choices);
      return v.picklist(choices, choices.join(' or '));
    }
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
  return syntax === 'scopes'
    ? v.message(schema(SCOPES), 'names with one space between them')
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

function formatFound(value: unknown): string {
  return (typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value)).slice(0, 100);
}
