import { InvalidArgumentError } from 'commander';

/**
 * Reads a whole number of the command line, 0 or more.
 * @throws InvalidArgumentError
 */
export function parseWhole(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Allowed is a whole number.');
}
