import type { Named } from '../name.ts';
import type { PreparedReload } from '../reload.ts';
import type { Secret } from '../secret.ts';
import type { PortalCheck, PortalStatus } from './portal-status.ts';

/** A portal that a person wants to add. */
export interface NewPortal {
  readonly name: string;
  /** The keys of a table `[portals.NAME]`, not validated, without those that name files. */
  readonly keys: Readonly<Record<string, unknown>>;
  /** Null if the client has none. */
  readonly clientSecret: Secret | null;
  /** Whether it may replace an added portal with this name. */
  readonly replace: boolean;
  /**
   * Without a client secret, it keeps that of the added portal with this name, if nothing but the redirect URI differs:
   * no other server, and no other client, may get it. Left out if not.
   */
  readonly keepsSecret?: boolean;
}

/** The result of adding a portal. In every case but `added`, nothing was stored. */
export type PortalAddition =
  /** The check may have found something else that is wrong, such as a portal that can't be reached. */
  | { readonly kind: 'added'; readonly checks: readonly PortalCheck[]; readonly reload: PreparedReload }
  /** The problem of each wrong key; that of the secret is `client_secret`. */
  | { readonly kind: 'invalid'; readonly problems: ReadonlyMap<string, string> }
  /** At the address of each key the portal does not answer, as its problem says. */
  | { readonly kind: 'other_address'; readonly problems: ReadonlyMap<string, string> }
  /** The portal does not accept the client ID with this secret. */
  | { readonly kind: 'client_rejected'; readonly checks: readonly PortalCheck[] };

/** A known cloud, as a person chooses it. */
export interface CloudChoice {
  /** The name of its preset. */
  readonly name: string;
  readonly title: string;
  readonly texts: Readonly<Record<'en' | 'de', CloudTexts>>;
  /** Where one registers an app at the cloud; null if there is nothing to register, and no client ID to enter. */
  readonly registerUrl: string | null;
  readonly clientSecret: 'required' | 'optional' | 'none';
  readonly variables: readonly CloudVariable[];
  /** The redirect URI to register there; null if the hub knows none, or while it has no address. */
  readonly redirectUri: string | null;
  /** Whether the portal's key `redirect_uri` must name it: neither the preset nor the hub fills it in. */
  readonly isRedirectEntered: boolean;
  /** Whether the cloud accepts only a public https address. */
  readonly needsPublicRedirect: boolean;
}

/** What people read about a cloud, in one language. */
interface CloudTexts {
  /** What appliances. */
  readonly summary: string;
  /** How one registers an app at the cloud; empty if there is nothing to register. */
  readonly steps: readonly string[];
  /** What each variable is called, and what its value must be, as the end of a sentence. */
  readonly variables: Readonly<Record<string, { readonly label: string; readonly description: string }>>;
}

/** Something that an installer enters for a cloud besides the client. */
interface CloudVariable {
  readonly name: string;
  /** Null if it must be entered. */
  readonly usual: string | null;
  /** Those to choose from; null for any. */
  readonly values: readonly string[] | null;
}

/** A portal as people call it. */
interface NamedPortal extends Named {
  /** Its origin or its issuer, such as `https://portal.example`. */
  readonly address: string;
}

/** The operations on portals. */
export interface PortalAdministration {
  /**
   * The portals, the default one first. The title is that of the cloud. Of a portal without a preset it is the name that
   * the configuration gives it, and of one that was added, whose name nobody may have chosen, the host of its address.
   */
  portals(): readonly NamedPortal[];
  /** The portals, as far as they are known now. */
  describePortals(): readonly PortalStatus[];
  /** The keys of an added portal's table `[portals.NAME]`, as entered, without the client secret; null if there is none. */
  enteredPortal(name: string): Promise<Readonly<Record<string, unknown>> | null>;
  /** Checks a portal without a login. @param name of it. @throws Failure `portal_unknown` */
  checkPortal(name: string): Promise<readonly PortalCheck[]>;
  /** The clouds of the catalogue, by name, and the hub's own redirect URI; null while it has no address. */
  cloudChoices(): Promise<{ readonly clouds: readonly CloudChoice[]; readonly redirectUri: string | null }>;
  /**
   * Checks a portal, and stores it for the next hub of this process.
   * @throws Failure `name_invalid`, `portal_declared`, `portal_exists`; `not_allowed` if another reload is under way or the
   * hub can't be replaced
   */
  addPortal(portal: NewPortal): Promise<PortalAddition>;
  /**
   * Removes an added portal, for the next hub of this process.
   * @throws Failure `portal_unknown`, `portal_declared`, `portal_in_use`; `not_allowed` as above
   */
  removePortal(name: string): Promise<PreparedReload>;
}
