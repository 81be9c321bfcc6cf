import { constants } from 'node:fs';
import { access, chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { scaleDeadline } from './deadlines.ts';
import { logFile } from './logs.ts';
import { IS_LONG_FORM } from './long.ts';

const CHROMIUM = '/usr/bin/chromium';
/** Chromium without its own windows: each page needs a third of the processor time. */
const HEADLESS_SHELL = '/usr/bin/chromium-headless-shell';

/** A phone of the usual size. */
export const PHONE: BrowserContextOptions = {
  viewport: { width: 390, height: 844 },
  deviceScaleFactor: 2,
  isMobile: true,
  hasTouch: true,
};
export const SMALL_PHONE: BrowserContextOptions = { ...PHONE, viewport: { width: 320, height: 568 } };
export const DESKTOP: BrowserContextOptions = { viewport: { width: 1280, height: 800 } };

/** Requests that a page cancels when it is left, by Playwright's names. */
const CANCELLED_ON_LEAVE = ['eventsource', 'xhr', 'script'];

/** Disables Chromium's own services. */
const FLAGS = [
  '--no-sandbox',
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** For a browser that shares the machine's network: only loopback can be reached. @param names that lead to 127.0.0.1 */
function loopbackOnly(names: readonly string[]): string {
  const rules = names.map((name) => `MAP ${name} 127.0.0.1`);
  return `--host-resolver-rules=${[...rules, 'MAP * ~NOTFOUND', 'EXCLUDE 127.0.0.1'].join(', ')}`;
}

/** Why no browser can be started here; null if one can. @param whole whether it must be the full Chromium */
export async function browserSkipReason(whole = false): Promise<string | null> {
  if (!whole && (await isProgram(HEADLESS_SHELL))) return null;
  return (await isProgram(CHROMIUM)) ? null : `${CHROMIUM} is missing`;
}

function isProgram(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** A browser; every visit has its own cookies and history. */
export interface Browser extends AsyncDisposable {
  visit(options?: BrowserContextOptions): Promise<Visit>;
}

/** One browser window. */
export interface Visit extends AsyncDisposable {
  readonly page: Page;
  /** Whether pages may run scripts. */
  readonly scripts: boolean;
  /** The origins that it sent requests to, in the order of their first requests. */
  readonly origins: readonly string[];
  /**
   * The errors of the console, the pages' policies and the network. A page that itself has a status of 400 or more is
   * not included.
   */
  readonly browserErrors: readonly string[];
  /** Discards the errors so far. */
  clearBrowserErrors(): void;
  /**
   * Saves a screenshot of the page among the logs.
   * @param isNeeded whether to take it; by default only in the long form of the tests
   */
  takeScreenshot(name: string, isNeeded?: boolean): Promise<void>;
}

export interface BrowserOptions {
  /** The network namespace to run in. */
  readonly namespace?: string;
  /** Whether to use the full Chromium, with its own pages such as certificate warnings. */
  readonly whole?: boolean;
  /** The home directory, which has the browser's trust store; default: that of the tests. */
  readonly home?: string;
  /** Host names that lead to 127.0.0.1, if it runs in no namespace of its own. */
  readonly names?: readonly string[];
}

/** Starts Chromium. */
export async function startBrowser(options: BrowserOptions = {}): Promise<Browser> {
  const { namespace, whole = false, home, names = [] } = options;
  await using starting = new AsyncDisposableStack();
  const program = !whole && (await isProgram(HEADLESS_SHELL)) ? HEADLESS_SHELL : CHROMIUM;
  const executablePath = namespace === undefined ? program : await wrapper(starting, program, namespace);
  const args = namespace === undefined ? [...FLAGS, loopbackOnly(names)] : FLAGS;
  const env = home === undefined ? process.env : { ...process.env, HOME: home };
  const browser = await chromium.launch({ executablePath, args, env });
  starting.defer(() => browser.close());
  const resources = starting.move();
  return {
    async visit(options = PHONE) {
      const context = await browser.newContext(options);
      const origins = new Set<string>();
      const browserErrors: string[] = [];
      context.on('request', (request) => origins.add(new URL(request.url()).origin));
      context.on('requestfailed', (request) => {
        const error = request.failure()?.errorText;
        // Leaving a page cancels its event stream and unfinished downloads.
        const isLeft = error === 'net::ERR_ABORTED' && CANCELLED_ON_LEAVE.includes(request.resourceType());
        if (!isLeft) browserErrors.push(`${request.url()}: ${error}`);
      });
      context.on('weberror', (error) => browserErrors.push(String(error.error())));
      context.on('console', (message) => {
        const ofThePage = message.location().url === message.page()?.url();
        const status = /^Failed to load resource: the server responded with a status of/.test(message.text());
        // A field was filled in before the page had focused it: no person types that fast.
        const late = message.text().startsWith('Autofocus processing was blocked');
        if (!(status && ofThePage) && !late) browserErrors.push(`${message.type()}: ${message.text()}`);
      });
      const page = await context.newPage();
      page.setDefaultTimeout(scaleDeadline(10_000));
      return {
        page,
        scripts: options.javaScriptEnabled !== false,
        browserErrors,
        clearBrowserErrors: () => void browserErrors.splice(0),
        get origins() {
          return [...origins];
        },
        async takeScreenshot(name, isNeeded = IS_LONG_FORM) {
          if (!isNeeded) return;
          const path = logFile(name).replace(/\.log$/, '.png');
          // On a busy machine Chromium sometimes has no frame to capture.
          const shoot = () => page.screenshot({ path });
          await shoot().catch(shoot);
        },
        [Symbol.asyncDispose]: () => context.close(),
      };
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** A script that runs Chromium in a namespace: Playwright starts a single file and can't put arguments before it. */
async function wrapper(resources: AsyncDisposableStack, program: string, namespace: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-chromium-'));
  resources.defer(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'chromium');
  await writeFile(file, `#!/bin/sh\nexec ip netns exec ${namespace} ${program} "$@"\n`);
  await chmod(file, 0o700);
  return file;
}
