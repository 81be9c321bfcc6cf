import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { browserSkipReason, startBrowser } from '../../support/browser.ts';
import { runLatchkey } from '../../support/hub-process.ts';
import { MAIN, SHARED_CACHE } from '../../support/program.ts';

const ENV = { PATH: process.env['PATH'], HOME: '/nonexistent', XDG_CACHE_HOME: SHARED_CACHE };

describe.concurrent('latchkey demo', () => {
  it('latchkey demo waits for a person to log in with a browser at the printed links', async (ctx) => {
    const missing = await browserSkipReason();
    if (missing !== null) ctx.skip(missing);
    const child = spawn(process.execPath, [MAIN, 'demo'], { env: ENV, stdio: ['ignore', 'pipe', 'inherit'] });
    ctx.onTestFinished(() => void child.kill('SIGKILL'));
    const links: string[] = [];
    const pages: string[] = [];
    const unreached: string[] = [];
    let output = '';
    let connected = 0;
    const lines = createInterface({ input: child.stdout });
    const allConnected = new Promise<void>((resolve) => {
      lines.on('line', (line) => {
        output += `${line}\n`;
        if (/^ {4}http:/.test(line)) links.push(line.trim());
        if (/^ {4}https:/.test(line)) pages.push(line.trim());
        if (line.includes('is connected') && ++connected === 3) resolve();
      });
    });
    while (links.length < 3) await once(lines, 'line');

    await using browser = await startBrowser();
    for (const link of links) {
      await using visit = await browser.visit();
      visit.page.on('requestfailed', () => unreached.push(link));
      await visit.page.goto(link);
      await visit.page.getByLabel('User name').fill('demo');
      await visit.page.getByLabel('Password').fill('demo');
      // One of the three logins ends at an unreachable address, as outside the home network.
      await visit.page.getByRole('button', { name: 'Log in' }).click({ noWaitAfter: true });
      await visit.page
        .getByLabel('Password')
        .waitFor({ state: 'detached' })
        .catch(() => undefined);
    }
    await allConnected;
    while (pages.length < 2) await once(lines, 'line');
    for (const page of pages) {
      await using visit = await browser.visit({ ignoreHTTPSErrors: true });
      await visit.page.goto(page);
      await visit.page.getByText('All 4 appliances are connected.').waitFor();
    }
    child.kill('SIGINT');
    const [status] = await once(child, 'exit');
    expect(status, output).toBe(0);
    expect(output).toContain('4 of 4 appliances paired');
    const [before = '', after = ''] = output.split(`${unreached[0]}\n`);
    expect(before).toContain('One of the three logins ends on an unreachable page on purpose');
    expect(after).toMatch(/^ {4}This login ends on an unreachable page on purpose/);
    expect(output.match(/This login ends/g)).toHaveLength(1);
    expect(after).toMatch(/heat-pump +✓ is connected \(the phone is not at home: the hub has polled for the code\)/);
  });

  it('latchkey demo runs longer than its time until each appliance has used a token, as on a slow machine', async () => {
    const { status, stdout, stderr } = await runLatchkey(['demo', '--auto', '--for', '1s', '--json'], ENV);
    expect(status, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ appliances: 4, bad_hand_outs: 0 });
  });
});
