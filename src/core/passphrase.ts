import { Failure } from './failure.ts';
import { Secret } from './secret.ts';

const SHORTEST = 12;
const LONGEST = 1024;
/** Fewer different characters are no passphrase but a key held down. */
const FEWEST_DIFFERENT = 5;

/**
 * Takes a passphrase that a copy is to be encrypted with.
 * @throws Failure `passphrase_weak`
 */
export function checkPassphrase(text: string): Secret {
  const passphrase = readPassphrase(text);
  const characters = [...passphrase.reveal()];
  if (characters.length >= SHORTEST && new Set(characters).size >= FEWEST_DIFFERENT) return passphrase;
  throw new Failure(
    'passphrase_weak',
    `the passphrase is too weak: use at least ${SHORTEST} characters, ${FEWEST_DIFFERENT} of them different, such as four words taken at random`,
  );
}

/**
 * Takes a passphrase as it is typed: the same characters are the same passphrase, however the terminal composes them.
 * @throws Failure `passphrase_weak` where it is empty or none that was ever taken
 */
export function readPassphrase(text: string): Secret {
  if (text !== '' && text.length <= LONGEST) return new Secret(text.normalize('NFC'));
  throw new Failure('passphrase_weak', `the passphrase must have 1 to ${LONGEST} characters`);
}
