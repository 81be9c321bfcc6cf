import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfiguration } from '../../src/configuration/configuration.ts';
import { temporaryFolder } from '../project/checkout.ts';

// Limits that no other test covers; docs/reliability.md lists all limits.

/** Store writes that take no virtual time, because there are thousands. */
describe('limits on file sizes', () => {
  it.each(['/dev/zero', 'large'])(
    'a configuration file that is endless or too large is not read (%s)',
    async (name) => {
      using folder = temporaryFolder();
      const file = join(folder.path, 'large');
      await writeFile(file, '#'.repeat(1_048_577));
      const loading = loadConfiguration(name === 'large' ? file : name, {});
      await expect(loading).rejects.toMatchObject({
        code: 'config_invalid',
        message: expect.stringContaining('larger than 1048576 bytes'),
      });
    },
  );

  it('a secret file or CA file that is too large is not read', async () => {
    using folder = temporaryFolder();
    const file = join(folder.path, 'latchkey.toml');
    const portal =
      '[portals.home]\nbase_url = "https://a.example"\nfrontend_url = "https://b.example"\nclient_id = "0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90"\n';
    await writeFile(join(folder.path, 'secret'), 'planted-secret-'.repeat(10_000), { mode: 0o600 });
    await writeFile(file, `${portal}client_secret_file = "secret"\n`);
    const loading = loadConfiguration(file, {});
    await expect(loading).rejects.toMatchObject({
      message: expect.stringMatching(/client_secret_file: .+larger than 65536 bytes/),
    });
    await expect(loading).rejects.not.toMatchObject({ message: expect.stringContaining('planted-secret') });
    await writeFile(join(folder.path, 'secret'), 'planted-secret', { mode: 0o600 });
    await writeFile(file, `${portal}client_secret_file = "secret"\nca_file = "/dev/zero"\n`);
    await expect(loadConfiguration(file, {})).rejects.toMatchObject({ message: expect.stringContaining('ca_file') });
  });
});
