import { expect, test } from 'vitest';
import { startLatchkey } from '../../cli/command.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { NotifySocket, systemdSkipReason } from '../../support/notify-socket.ts';

test.skipIf(systemdSkipReason)(
  'an emulator under systemd reports when it is ready, its addresses and that it stops',
  async () => {
    await using socket = await NotifySocket.listen();
    const emulator = startLatchkey(['emulator', '--json'], { NOTIFY_SOCKET: socket.path });
    await socket.waitForAssignment('READY=1');
    const output = JSON.parse(await emulator.stdout(/\n/)) as Record<string, string>;
    rememberSecrets([output['client_secret'] ?? '']);
    expect((await fetch(`${output['base_url']}/api/whoami`)).status).toBe(401);
    emulator.process.kill('SIGTERM');
    expect(await emulator.ended).toMatchObject({ status: 0, stderr: '' });
    await socket.waitForAssignment('STOPPING=1');
    expect(socket.messages).toEqual([
      ['READY=1', `STATUS=${output['base_url']} and ${output['frontend_url']}`],
      ['STOPPING=1', 'STATUS=Stopping'],
    ]);
  },
);
