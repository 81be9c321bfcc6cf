import { allClouds } from '../clouds/catalogue.ts';
import type { Cloud } from '../clouds/cloud.ts';
import type { CloudChoice } from '../core/portals/portal-administration.ts';
import { urlHost } from '../system/addresses.ts';

/** Where the hub takes redirects. */
interface Ports {
  /** The hub's address on the home network, null while there is none. */
  address(): string | null;
  readonly httpPort: number;
  readonly httpsPort: number;
}

/** The clouds of the catalogue, with the redirect URI to register at each, and that of the hub. */
export function describeClouds({ address, httpPort, httpsPort }: Ports) {
  const host = address();
  const own = host && `http://${urlHost(host)}:${httpPort}/callback`;
  const redirectUriOf = ({ redirect, settings }: Cloud) => {
    switch (redirect) {
      case 'lan':
        return own;
      case 'localhost':
        return `http://localhost:${httpPort}/callback`;
      case 'https':
        return host && `https://${urlHost(host)}:${httpsPort}/callback`;
      case 'fixed':
        return settings.redirect_uri ?? null;
      case null:
        return null;
    }
  };
  const clouds = allClouds().map((cloud): CloudChoice => {
    const { name, title, summary, register, client_secret: clientSecret, redirect, variables = {} } = cloud;
    return {
      ...{ name, title, summary, register, clientSecret },
      variables: Object.entries(variables).map(([variable, { description, default: usual = null }]) => ({
        ...{ name: variable, description, usual },
      })),
      redirectUri: redirectUriOf(cloud),
      redirectFrom:
        redirect === 'localhost' || redirect === 'https' ? 'configured' : redirect === 'fixed' ? 'preset' : 'hub',
    };
  });
  return { clouds, redirectUri: own };
}
