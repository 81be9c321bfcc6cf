import { allClouds } from '../clouds/catalogue.ts';
import type { Cloud } from '../clouds/cloud.ts';
import type { CloudChoice } from '../core/portals/portal-administration.ts';

/** Where the hub takes redirects: on the home network, and from a browser on its own machine; null while it has no address. */
type Callbacks = Readonly<Record<'lan' | 'localhost', string | null>>;

/** The values that a pattern such as `^(eu|na)$` allows; null if it is of another kind. */
function valuesOf(pattern: string): readonly string[] | null {
  return /^\^\((\w+(?:\|\w+)+)\)\$$/.exec(pattern)?.[1]?.split('|') ?? null;
}

/** The clouds of the catalogue, with the redirect URI to register at each, and that of the hub. */
export function describeClouds(callbacks: Callbacks) {
  const redirectUriOf = ({ redirect, settings }: Cloud) => {
    // A public address is nobody's but the installer's own.
    if (redirect === null || redirect === 'https' || settings.login === 'device') return null;
    return redirect === 'fixed' ? (settings.redirect_uri ?? null) : callbacks[redirect];
  };
  const clouds = allClouds().map((cloud): CloudChoice => {
    const {
      name,
      title,
      summary,
      register,
      client_secret: clientSecret,
      redirect,
      settings,
      variables = {},
      de,
    } = cloud;
    const entries = Object.entries(variables);
    const described = entries.map(([variable, { label, description }]) => [variable, { label, description }] as const);
    return {
      name,
      title,
      clientSecret: settings.login === 'device' && clientSecret === 'optional' ? 'none' : clientSecret,
      texts: {
        en: { summary, steps: register?.steps ?? [], variables: Object.fromEntries(described) },
        de: { steps: [], variables: {}, ...de },
      },
      registerUrl: register?.url ?? null,
      variables: entries.map(([variable, { default: usual = null, pattern }]) => {
        return { name: variable, usual, values: valuesOf(pattern) };
      }),
      redirectUri: redirectUriOf(cloud),
      isRedirectEntered: settings.login !== 'device' && (redirect === 'localhost' || redirect === 'https'),
      needsPublicRedirect: redirect === 'https',
    };
  });
  return { clouds, redirectUri: callbacks.lan };
}
