/**
 * Signs in to a hub's page, as a program on a host of a test's LAN. Arguments: the page's address, a setup code, the
 * number of attempts per source address, a source address of this host, and the number of source addresses: `#` in the
 * address stands for 1, 2, 3, … (hexadecimal). Prints the number of responses per status, as JSON.
 */
import { Agent, request } from 'undici';

const [origin = '', code = '', times = '1', pattern = '', many = '1'] = process.argv.slice(2);
const addresses = Array.from({ length: Number(many) }, (_, index) => pattern.replace('#', (index + 1).toString(16)));
const statuses: Record<number, number> = {};

async function signIn(localAddress: string): Promise<void> {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false }, localAddress });
  for (let count = 0; count < Number(times); count++) {
    const { statusCode, body } = await request(`${origin}/sign-in`, {
      method: 'POST',
      dispatcher,
      headers: { origin, 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ code }).toString(),
    });
    await body.dump();
    statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
  }
  await dispatcher.destroy();
}

for (let first = 0; first < addresses.length; first += 10) {
  await Promise.all(addresses.slice(first, first + 10).map(signIn));
}
console.log(JSON.stringify(statuses));
