import { Failure } from './failure.ts';

const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

/**
 * Checks the name of an appliance or a connection, and returns it.
 * @throws Failure `name_invalid`
 */
export function checkName(what: 'appliance' | 'connection', name: string): string {
  if (NAME.test(name)) return name;
  throw new Failure(
    'name_invalid',
    `${JSON.stringify(name.slice(0, 80))} is not a valid ${what} name: use 1 to 63 of a-z, 0-9 and "-", beginning with a letter or digit`,
  );
}
