import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as v from 'valibot';

const run = promisify(execFile);

/** Prints the kernel's IPv6 neighbour table (ip-neighbour(8)). */
const NEIGHBOUR_ARGUMENTS = ['-j', '-6', 'neigh', 'show'];
/** In ms. */
const PROGRAM_TIMEOUT = 2000;

const neighboursSchema = v.array(v.object({ dst: v.string(), dev: v.string(), lladdr: v.exactOptional(v.string()) }));
type Neighbours = v.InferOutput<typeof neighboursSchema>;

/**
 * The link-layer addresses of IPv6 neighbours. A device can use any number of IPv6 addresses, but has one link-layer
 * address.
 */
export class NeighbourTable {
  readonly #program: string;
  #running: Promise<unknown> = Promise.resolve();
  #next: Promise<Neighbours> | null = null;

  constructor(program = 'ip') {
    this.#program = program;
  }

  /**
   * @param address of a connected peer, as reported by its socket
   * @returns an address such as `02:42:ac:11:00:02`; null if the kernel does not know it, or the program failed
   */
  async findLinkLayerAddress(address: string): Promise<string | null> {
    const [plain, zone] = address.split('%');
    const entries = await this.#read();
    const found = entries.find(
      ({ dst, dev, lladdr }) => dst === plain && (zone ?? dev) === dev && lladdr !== undefined,
    );
    return found?.lladdr ?? null;
  }

  /**
   * Calls during a run share the next run, so that at most one program runs, and each call sees a table from after the
   * call.
   */
  #read(): Promise<Neighbours> {
    this.#next ??= this.#running.then(() => {
      this.#next = null;
      const read = this.#runProgram();
      this.#running = read;
      return read;
    });
    return this.#next;
  }

  async #runProgram(): Promise<Neighbours> {
    try {
      const { stdout } = await run(this.#program, NEIGHBOUR_ARGUMENTS, { timeout: PROGRAM_TIMEOUT });
      return v.parse(neighboursSchema, JSON.parse(stdout));
    } catch {
      return [];
    }
  }
}
