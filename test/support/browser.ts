import { constants } from 'node:fs';
import { access, chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { scaleDeadline } from './deadlines.ts';
import { logFile } from './logs.ts';
import { IS_LONG_FORM } from './long.ts';

const CHROMIUM = '/usr/bin/chromium';
/** Chromium without its own windows: it takes a third of the processor time for each page. */
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

/** What a page loads beside itself, as Playwright names it. */
const LET_GO = ['eventsource', 'xhr', 'script'];

/** Chromium's own services stay off. */
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

/** For a browser that shares the machine's own network: nothing but loopback can be reached. */
const LOOPBACK_ONLY = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1';

/** Says why no browser can be started here, or null where it can. */
export async function browserSkipReason(): Promise<string | null> {
  return (await isProgram(CHROMIUM)) ? null : `${CHROMIUM} is missing`;
}

function isProgram(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** A browser; every visit has cookies and history of its own. */
export interface Browser extends AsyncDisposable {
  visit(options?: BrowserContextOptions): Promise<Visit>;
}

/** One person's window. */
export interface Visit extends AsyncDisposable {
  readonly page: Page;
  /** Whether pages may run scripts. */
  readonly scripts: boolean;
  /** The origins that it sent requests to, in the order of the first one. */
  readonly origins: readonly string[];
  /**
   * What the console, the pages' policies and the network complained about. That a page itself came with a status of 400
   * or more is none of it.
   */
  readonly browserErrors: readonly string[];
  /** Forgets what was complained about until now. */
  clearBrowserErrors(): void;
  /**
   * Keeps a picture of the page among the logs.
   * @param isNeeded whether it does; by default in the long form of the tests alone
   */
  takeScreenshot(name: string, isNeeded?: boolean): Promise<void>;
}

export interface BrowserOptions {
  /** The network namespace that it runs in. */
  readonly namespace?: string;
  /** Whether it has what Chromium shows by itself, as its warnings of certificates. */
  readonly whole?: boolean;
}

/** Starts Chromium. */
export async function startBrowser({ namespace, whole = false }: BrowserOptions = {}): Promise<Browser> {
  await using starting = new AsyncDisposableStack();
  const program = !whole && (await isProgram(HEADLESS_SHELL)) ? HEADLESS_SHELL : CHROMIUM;
  const executablePath = namespace === undefined ? program : await wrapper(starting, program, namespace);
  const args = namespace === undefined ? [...FLAGS, LOOPBACK_ONLY] : FLAGS;
  const browser = await chromium.launch({ executablePath, args });
  starting.defer(() => browser.close());
  const resources = starting.move();
  return {
    async visit(options = PHONE) {
      const context = await browser.newContext(options);
      const origins = new Set<string>();
      const complaints: string[] = [];
      context.on('request', (request) => origins.add(new URL(request.url()).origin));
      context.on('requestfailed', (request) => {
        const error = request.failure()?.errorText;
        // A page that is left lets go of what it follows, and of what it has not got yet.
        const isLeft = error === 'net::ERR_ABORTED' && LET_GO.includes(request.resourceType());
        if (!isLeft) complaints.push(`${request.url()}: ${error}`);
      });
      context.on('weberror', (error) => complaints.push(String(error.error())));
      context.on('console', (message) => {
        const ofThePage = message.location().url === message.page()?.url();
        const status = /^Failed to load resource: the server responded with a status of/.test(message.text());
        // A field was filled in before the page had put the cursor there: nobody types as fast.
        const late = message.text().startsWith('Autofocus processing was blocked');
        if (!(status && ofThePage) && !late) complaints.push(`${message.type()}: ${message.text()}`);
      });
      const page = await context.newPage();
      page.setDefaultTimeout(scaleDeadline(10_000));
      return {
        page,
        scripts: options.javaScriptEnabled !== false,
        browserErrors: complaints,
        clearBrowserErrors: () => void complaints.splice(0),
        get origins() {
          return [...origins];
        },
        async takeScreenshot(name, isNeeded = IS_LONG_FORM) {
          if (!isNeeded) return;
          const path = logFile(name).replace(/\.log$/, '.png');
          // Chromium on a busy machine now and then has no frame to give.
          const shoot = () => page.screenshot({ path });
          await shoot().catch(shoot);
        },
        [Symbol.asyncDispose]: () => context.close(),
      };
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** A program that is Chromium in a namespace: playwright starts one file, without arguments of its own before it. */
async function wrapper(resources: AsyncDisposableStack, program: string, namespace: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-chromium-'));
  resources.defer(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'chromium');
  await writeFile(file, `#!/bin/sh\nexec ip netns exec ${namespace} ${program} "$@"\n`);
  await chmod(file, 0o700);
  return file;
}
