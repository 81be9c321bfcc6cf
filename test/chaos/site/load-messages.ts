/** A hub that appliances ask. */
export interface AskedHub {
  readonly name: string;
  /** Its `https://address:port`. */
  readonly origin: string;
}

/** An appliance and its credentials. */
export interface LoadAppliance {
  readonly name: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** A command for the process of the appliances, one per line of JSON; each has one reply. */
export type LoadCommand =
  /** Starts the load. `every`: how often each appliance asks all hubs, in ms. */
  | {
      readonly do: 'start';
      readonly appliances: readonly LoadAppliance[];
      readonly hubs: readonly AskedHub[];
      readonly ca: string;
      readonly every: number;
    }
  | { readonly do: 'hubs'; readonly hubs: readonly AskedHub[] }
  /** Sends a request to the emulator. */
  | { readonly do: 'ask_portal'; readonly method: string; readonly path: string; readonly body?: unknown }
  /** Logs in through a link as a browser does, and follows the redirects. */
  | { readonly do: 'log_in'; readonly url: string; readonly user: string; readonly password: string }
  /** Another program logs in. The result is its refresh token. */
  | {
      readonly do: 'log_in_elsewhere';
      readonly user: string;
      readonly frontendUrl: string;
      readonly clientId: string;
      readonly clientSecret: string;
    }
  /** Ends the load, and waits for the requests under way. */
  | { readonly do: 'stop' };

/** What the appliances have seen so far. */
export interface LoadCounts {
  readonly requests: number;
  readonly tokens: number;
  /** Tokens that were used at the portal, each at once; `rejected` of them did not work. */
  readonly tried: number;
  readonly rejected: number;
  /** Tokens that could not be used, because the portal did not respond. */
  readonly untried: number;
  /** Tokens that had ended by the hub's own statement before they could be used. */
  readonly ended: number;
  /** Requests without a token, by hub and status or error code. */
  readonly refusals: Readonly<Record<string, number>>;
}

/** What the process of the appliances reports, one per line of JSON. Times are ms since 1970. */
export type LoadReport =
  | { readonly event: 'ready' }
  | { readonly event: 'reply'; readonly id: number; readonly result: unknown; readonly error: string | null }
  /** The first time that a hub has handed out an access token. */
  | {
      readonly event: 'handed_out';
      readonly hub: string;
      readonly grant: string;
      readonly generation: number;
      readonly at: number;
    }
  /** The portal rejected a token that an appliance had just got. */
  | {
      readonly event: 'rejected';
      readonly appliance: string;
      readonly hub: string;
      readonly grant: string;
      readonly generation: number;
      readonly at: number;
      readonly status: number;
    }
  /** No hub had a token for an appliance that asked all of them, from its first such request to the next token. */
  | { readonly event: 'without_token'; readonly appliance: string; readonly from: number; readonly to: number };
