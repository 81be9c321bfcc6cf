import * as v from 'valibot';
import { didYouMean } from '../../system/did-you-mean.ts';
import { integerInRange, numberInRange, positiveSeconds } from '../http/json-body.ts';
import { SETTINGS, type SettingDefinition, type SettingOptions, type Settings } from './settings.ts';

/** An option that can't be used; the message names it, what was found and what is allowed. */
export class OptionError extends Error {
  override readonly name = 'OptionError';
}

/** A JavaScript timestamp has to hold now and all lifetimes together; in seconds. */
const MAX_SETTING_SECONDS = 1e9;

/** Each setting's values, by its name; the message of an issue says what is allowed ("is …"). */
export const settingSchemas: Readonly<Record<string, v.GenericSchema>> = Object.fromEntries(
  Object.entries(SETTINGS).map(([name, declared]) => [name, settingSchema(declared)]),
);

const SettingsSchema = v.strictObject(settingSchemas);

const INITIAL_SETTINGS = Object.fromEntries(
  Object.entries(SETTINGS).map(([name, { initial }]) => [name, initial]),
) as Settings;

/**
 * The settings after a change.
 * @param change names as in the library; unknown ones are refused
 * @param before default: the initial values
 * @throws OptionError
 */
export function applySettingsChange(change: object, before: Settings = INITIAL_SETTINGS): Settings {
  rejectUnknownKeys(change, SETTINGS);
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  const parsed = v.safeParse(SettingsSchema, { ...before, ...Object.fromEntries(given) });
  if (parsed.success) return parsed.output as Settings;
  const [issue] = parsed.issues;
  throw new OptionError(`${v.getDotPath(issue)}: found ${formatFound(issue.input)}; allowed ${issue.message}`);
}

/**
 * Refuses names that nobody knows: in JavaScript no compiler does, and a client would be tested against another portal than
 * its author believes.
 * @param known an object that has the names which are known
 * @param of what is said before such a name, as `clients: `
 * @throws OptionError
 */
export function rejectUnknownKeys(given: object, known: object, of = ''): void {
  const names = Object.keys(known);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const meant = didYouMean(unknown, names);
  throw new OptionError(
    `${of}${unknown.slice(0, 100)}: found an unknown option${meant}; allowed are ${names.join(', ')}`,
  );
}

/** The changeable settings alone, of an object that holds more. */
export function pickSettings<Holder extends SettingOptions>(
  holder: Holder,
): Pick<Holder, keyof Holder & keyof Settings> {
  const own = Object.entries(holder).filter(([name]) => Object.hasOwn(SETTINGS, name));
  return Object.fromEntries(own) as Pick<Holder, keyof Holder & keyof Settings>;
}

function settingSchema({ values, initial }: SettingDefinition<unknown>): v.GenericSchema {
  switch (values.kind) {
    case 'boolean':
      return v.boolean('is true or false');
    case 'choice': {
      const choices = Object.keys(values.choices);
      return v.picklist(choices, `is ${choices.join(' or ')}`);
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
          'is a JavaScript regular expression of 1 to 200 characters',
        ),
      );
  }
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
