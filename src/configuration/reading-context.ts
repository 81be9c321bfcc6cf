import type { Secret } from '../core/secret.ts';
import type { SecretForm } from '../system/secret-file.ts';

/** What is needed to read a configuration with the files that it names. */
export interface ReadingContext {
  /** The base of relative paths. */
  readonly directory: string;
  /** systemd's `$CREDENTIALS_DIRECTORY`. */
  readonly credentialsDirectory: string | undefined;
  /**
   * Reads the secret that a key names. White space around it is removed and reported, unless the form is `exact`.
   * @throws Error with a message that fits after the key's name
   */
  readSecret(key: string, file: string, form?: SecretForm | 'exact'): Promise<Secret>;
  /** Reports the problem of a key. */
  report(key: string, problem: string): void;
}
