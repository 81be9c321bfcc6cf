import { allClouds } from '../clouds/catalogue.ts';
import type { Cloud } from '../clouds/cloud.ts';
import type { CloudChoice } from '../core/portals/portal-administration.ts';

/** Where the hub takes redirects: on the home network, from a browser on its own machine, and over HTTPS; null while it has no address. */
type Callbacks = Readonly<Record<'lan' | 'localhost' | 'https', string | null>>;

/** The clouds of the catalogue, with the redirect URI to register at each, and that of the hub. */
export function describeClouds(callbacks: Callbacks) {
  const redirectUriOf = ({ redirect, settings }: Cloud) => {
    if (redirect === null) return null;
    return redirect === 'fixed' ? (settings.redirect_uri ?? null) : callbacks[redirect];
  };
  const clouds = allClouds().map((cloud): CloudChoice => {
    const { name, title, summary, register, client_secret: clientSecret, redirect, variables = {} } = cloud;
    return {
      ...{ name, title, summary, register, clientSecret },
      variables: Object.entries(variables).map(([variable, { description, default: usual = null }]) => ({
        ...{ name: variable, description, usual },
      })),
      redirectUri: redirectUriOf(cloud),
      isRedirectEntered: redirect === 'localhost' || redirect === 'https',
    };
  });
  return { clouds, redirectUri: callbacks.lan };
}
