import type { Endpoint } from '../http/logged-request.ts';

/** Which requests a fault is for. */
interface ForRequests {
  /** `*`: any, paths of no endpoint included. */
  readonly endpoint: Exclude<Endpoint, 'unknown'> | '*';
  /** Only requests of this grant type; for the token endpoint alone. */
  readonly grantType?: string | undefined;
  /** Only requests that name this registered client, authenticated or not. */
  readonly client?: string | undefined;
}

/** How often a fault strikes. */
interface Often {
  /** So many strikes, then it is spent; null: until it is removed. Default: 1. */
  readonly times?: number | null | undefined;
  /** Strikes by chance, drawn from the emulator's seed: from 0 to 1. Default: 1. */
  readonly probability?: number | undefined;
  /** Strikes only each so-manieth request that it is for. Default: 1. */
  readonly every?: number | undefined;
}

/** Whether what the request asks for is done first: codes are used, tokens rotated. Default: false. */
interface Committing {
  readonly commit?: boolean | undefined;
}

/** What comes in place of the right answer. */
export type ReplacementFault =
  | {
      readonly kind: 'status';
      /** From 200 to 599. */
      readonly status: number;
      /** Default: `content-type: application/json`. */
      readonly headers?: Readonly<Record<string, string>> | undefined;
      /** Default: empty. */
      readonly body?: string | undefined;
    }
  | {
      readonly kind: 'redirect';
      readonly location: string;
      /** Default: 302. */
      readonly status?: 301 | 302 | 307 | 308 | undefined;
    }
  /** 200 and `application/json`, and the text is a web page: what a captive portal does. */
  | { readonly kind: 'not_json' };

/** What comes before the answer. */
type Waiting =
  | {
      readonly kind: 'delay';
      /** Of real time, whatever the emulator's clock says. */
      readonly seconds: number;
    }
  /** No answer comes; the connection stays open until the client or the emulator closes it. */
  | { readonly kind: 'hang' };

/** What becomes of the right answer; what the request asks for is done. */
export type ResponseFault =
  /** The connection is reset in place of the answer. */
  | { readonly kind: 'commit_then_drop' }
  /** `Content-Length` of the whole, so many bytes of the body, then the connection is closed. */
  | { readonly kind: 'truncate'; readonly bytes: number }
  | { readonly kind: 'slow_body'; readonly bytesPerSecond: number }
  | { readonly kind: 'content_type'; readonly contentType: string }
  /** The right answer, followed by white space up to so many bytes. */
  | { readonly kind: 'oversize'; readonly bytes: number }
  /** The `Date` header is so many seconds ahead, or behind where negative. */
  | { readonly kind: 'wrong_date'; readonly offset: number };

/** A fault that strikes requests; of several for one request the one that was added first strikes. */
export type RequestFault = ForRequests &
  Often &
  (
    | (Committing & (ReplacementFault | Waiting))
    | ResponseFault
    /** The connection is reset, and nothing was done. */
    | { readonly kind: 'reset_before' }
  );

/** A fault that strikes connections before there is a TLS session; only where the emulator speaks TLS. */
export interface TlsFault extends Often {
  readonly kind: 'tls_failure';
  readonly origin: 'base' | 'frontend';
  /** What comes in place of the handshake: bytes that are no TLS, or the end of the connection. Default: `garbage`. */
  readonly answer?: 'garbage' | 'close' | undefined;
}

/** An origin's port refuses connections, and those that are open are cut, until it is removed or its time is over. */
interface DownFault {
  readonly kind: 'origin_down';
  readonly origin: 'base' | 'frontend';
  /** Of real time. Default: null, until it is removed. */
  readonly seconds?: number | null | undefined;
}

/** A fault to be met by clients of the emulator. */
export type FaultOptions = RequestFault | TlsFault | DownFault;

/** A fault with its id and what became of it. */
export type FaultView = FaultOptions & {
  readonly id: string;
  /** How often it struck. */
  readonly hits: number;
  /** How often it strikes yet; null: until it is removed. Of an origin that is down: 1, and 0 once it is up again. */
  readonly left: number | null;
};

/** A fault that can't be; the message names the member, what was found and what is allowed. */
export class FaultError extends Error {
  override readonly name = 'FaultError';
}
