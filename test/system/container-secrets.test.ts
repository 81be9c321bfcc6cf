import { expect, it } from 'vitest';
import { CONTAINER_SECRETS, readSecret } from '../../src/system/secret-file.ts';

it('the error for a missing secret of a container says how to pass it', async () => {
  await expect(readSecret('absent.secret', '/etc/latchkey', CONTAINER_SECRETS)).rejects.toThrow(
    'names neither a secret of this container nor an existing file: pass the file as a secret of the container ("--secret"), which appears in /run/secrets, and give only its name here; relative paths begin at /etc/latchkey',
  );
});
