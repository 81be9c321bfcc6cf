import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';
import type { ControlClient } from '../../control/client.ts';
import { messageOf } from '../../core/failure.ts';
import { printable, printStderr } from '../terminal/output.ts';
import { loginFailedText } from './failure-texts.ts';

const QUESTION =
  'If the browser ends on an error page, paste its address here: (it stays invisible; press Enter afterwards)';

/**
 * Takes the addresses that a person pastes on the terminal while a pairing waits, and hands them to the hub. The address
 * contains the code of the login, so it is not echoed; and a terminal that echoes lines would cut them at 4096 bytes.
 */
export class AddressPrompt implements Disposable {
  readonly #hub: ControlClient;
  readonly #name: string;
  #terminal: Interface | null = null;
  #isOver = false;

  /** @param name of the connection */
  constructor(hub: ControlClient, name: string) {
    this.#hub = hub;
    this.#name = name;
  }

  /**
   * Asks for the address, as long as the prompt is not disposed of.
   * @param report prints why an address was not used
   */
  open(report: (message: string) => void): void {
    if (this.#isOver) return;
    // Before the question, so that even a fast answer is not echoed.
    this.#terminal ??= this.#openTerminal(report);
    printStderr(QUESTION);
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#terminal?.close();
  }

  async #paste(line: string, report: (message: string) => void): Promise<void> {
    try {
      const { failure } = await this.#hub.request('pasteAddress', { name: this.#name, address: line.trim() });
      if (failure !== null && !this.#isOver) report(loginFailedText(failure));
    } catch (error) {
      // The pairing may have ended meanwhile, which says how.
      if (!this.#isOver) report(printable(messageOf(error)));
    }
  }

  #openTerminal(report: (message: string) => void): Interface {
    const discard = new Writable({ write: (_chunk, _encoding, done) => done() });
    const terminal = createInterface({ input: process.stdin, output: discard, terminal: true, historySize: 0 });
    // The terminal sends no signal for Ctrl-C while it does not echo.
    terminal.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
    // Ctrl-D: the person does not want to be asked.
    terminal.once('close', () => {
      this.#isOver = true;
    });
    terminal.on('line', (line) => {
      if (line.trim() !== '') void this.#paste(line, report);
    });
    return terminal;
  }
}
