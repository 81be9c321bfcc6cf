import type { Settings } from './options.ts';
import { type SwitchOptions, switched, switchesIn } from './switches.ts';

/** Holds the settings that are in force, and changes them while the emulator runs. */
export class Switchboard {
  readonly #start: Settings;
  readonly #changed: () => void;
  #settings: Settings;

  /** @param changed is called after every change */
  constructor(start: Settings, changed: () => void) {
    this.#start = start;
    this.#changed = changed;
    this.#settings = start;
  }

  /** The settings in force. The object never changes: whoever holds on to it keeps what it began with. */
  get settings(): Settings {
    return this.#settings;
  }

  /**
   * Changes some switches, all of them or, where one is no good, none.
   * @throws OptionError
   */
  change(change: SwitchOptions): void {
    this.#settings = { ...this.#settings, ...switched(change, switchesIn(this.#settings)) };
    this.#changed();
  }

  /** Back to what the emulator was started with. */
  reset(): void {
    this.#settings = this.#start;
    this.#changed();
  }
}
