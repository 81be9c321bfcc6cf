import { expect, test } from 'vitest';
import { unreadableFileMessage } from '../../src/system/bounded-file.ts';

test('a file that the hub may not read is not said to be missing or empty, and the message has the command that opens it', () => {
  const error = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
  expect(unreadableFileMessage('/etc/latchkey/database-ca.pem', error)).toBe(
    "/etc/latchkey/database-ca.pem can't be read (EACCES: permission denied): sudo chmod 644 /etc/latchkey/database-ca.pem",
  );
});
