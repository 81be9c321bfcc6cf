/** What is said in the archive of itself. */
export const README = `A hub's diagnostics, made by "latchkey doctor --bundle", for somebody who shall say what is wrong.

doctor.json         what each check found
status.json         the hub and its appliances, as "latchkey status" has them; the links of open pairings are left out
configuration.json  the configuration as it was read, without any secret; of a webhook the origin, of a command the program
environment.json    the names of variables for Latchkey; values only where they can't be secret
versions.json       Latchkey, Node.js, kernel, distribution, machine
network.txt         interfaces and routes
files.txt           the files of the state directory: mode, owner, size, time, name
history.json        what happened to each appliance
metrics.txt         what the hub told Prometheus
journal.txt         the service's last 2,000 lines

Not inside: tokens, codes, secrets, keys, the setup code, cookies, the store, and anybody's passwords. What looks like one of
them was replaced by [removed]. Inside are names of appliances, addresses of this home's network and of the portal: give it to
nobody who should not know these.
`;
