import type { Locator } from 'playwright-core';
import { expect } from 'vitest';
import type { Emulator, EmulatorOptions } from '../../src/emulator/index.ts';
import { type Browser, browserSkipReason, DESKTOP, startBrowser, type Visit } from '../support/browser.ts';
import { setUpOnce } from '../support/set-up.ts';
import { findUsabilityProblems } from '../support/usability.ts';
import { get, HEATER, obtainTokens, PUMP, refreshTokens, requestConfig, startTestEmulator } from './portal-client.ts';

/** An emulator with its console open in a browser. */
interface Console extends Visit {
  readonly emulator: Emulator;
  /** Parts of the browser errors that a test expects. */
  readonly expected: string[];
  /** Finds a section by its heading. */
  section(name: string): Locator;
}

/**
 * Starts a browser for the tests of this group, which are skipped if there is none.
 * @returns a function that opens a console. The browser must report no errors and contact no other origin.
 */
export function useConsole() {
  let browser: Browser;
  setUpOnce(
    async (parts) => {
      browser = parts.use(await startBrowser());
    },
    { skipReason: browserSkipReason },
  );

  return async (options: EmulatorOptions = {}, window = DESKTOP): Promise<Console> => {
    await using starting = new AsyncDisposableStack();
    const emulator = starting.use(await startTestEmulator(options));
    const visit = starting.use(await browser.visit(window));
    await visit.page.goto(emulator.consoleUrl);
    await visit.page.getByText('live', { exact: true }).waitFor();
    const expected: string[] = [];
    const resources = starting.move();
    return {
      emulator,
      expected,
      ...visit,
      section: (name) => visit.page.getByRole('region', { name }),
      async [Symbol.asyncDispose]() {
        const browserErrors = [...visit.browserErrors];
        // The event stream stays open until here, and its end is one more browser error.
        await resources.disposeAsync();
        expect(browserErrors).toEqual(expected.map((part) => expect.stringContaining(part)));
        expect(visit.origins).toEqual([emulator.baseUrl]);
      },
    };
  };
}

/** Everything on the console is legible, reachable and within the window, whatever is open. */
export async function expectUsable(opened: Console): Promise<void> {
  const { emulator, page, section } = opened;
  const { refresh_token } = await obtainTokens(emulator, { scope: 'Monitoring RemoteControl' });
  emulator.addFault({ kind: 'commit_then_drop', endpoint: 'token', grantType: 'refresh_token', times: 2 });
  await refreshTokens(emulator, refresh_token).catch(() => null);
  await refreshTokens(emulator, 'no-such-token').catch(() => null);
  await refreshTokens(emulator, refresh_token);
  await get((await requestConfig(emulator)).authorize_url);
  await section('Waiting for a login').getByRole('button', { name: 'Refuse' }).waitFor();
  await section('Faults').getByText('2 hits, used up').waitFor();
  await section('Findings').getByText('Reused refresh token').waitFor();
  expect(await findUsabilityProblems(page)).toEqual([]);
  const heading = await section('Requests')
    .getByRole('heading')
    .evaluate((element) => {
      const range = document.createRange();
      range.selectNodeContents(element);
      return range.getBoundingClientRect().right;
    });
  const label = await section('Requests').getByText('Endpoint', { exact: true }).boundingBox();
  expect(label?.x).toBeGreaterThan(heading);
  await page.getByRole('navigation').getByRole('link', { name: 'Settings' }).click();
  await expect.poll(() => page.evaluate(() => scrollY)).toBeGreaterThan(500);
  const newest = section('Requests').locator('summary').first();
  await newest.click();
  await page.getByRole('button', { name: 'Reset …' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).waitFor();
  expect(await findUsabilityProblems(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await newest.click();
  await section('Faults').getByLabel('Kind').selectOption('status');
  expect(await findUsabilityProblems(page)).toEqual([]);
}

/** For {@link expectUsable}: clients whose names a person would give. */
export const NAMED_CLIENTS = [{ ...HEATER, name: 'Heat pump' }, PUMP];

/** The lines of the log, newest first. */
export function lines(log: Locator): Promise<string[]> {
  return log.locator('summary').allInnerTexts();
}
