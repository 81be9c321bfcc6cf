/** The colours of the light and the dark scheme. */
const PALETTE = `
:root { color-scheme: light dark; --page: #f1f3f6; --card: #fff; --text: #1b1f24; --quiet: #545d66; --line: #d3d9e0; --field: #6b7580;
  --good: #1a7f37; --warn: #8a5a00; --bad: #b3261e; --link: #0b57d0; --on-link: #fff; --tint: #e8effb; }
@media (prefers-color-scheme: dark) { :root { --page: #101418; --card: #1b2127; --text: #eceff2; --quiet: #a8b3bd; --line: #37414b; --field: #8a96a1;
  --good: #57d27a; --warn: #f0b95a; --bad: #ff9a91; --link: #8fb7ff; --on-link: #0d1b33; --tint: #1f2d44; } }
`;

/** The style of the public pages: for a phone at arm's length. A setup code, of 19 characters, fits into a field. */
export const PUBLIC_STYLE = `${PALETTE}body { font: 1.125rem/1.5 system-ui, sans-serif; margin: 0; min-height: 100vh; min-height: 100dvh; display: grid;
  grid-template-columns: minmax(0, 28rem); justify-content: center; align-items: center; background: var(--page); color: var(--text); }
main { margin: 1rem; padding: 2.25rem 1.25rem 1.25rem; text-align: center; background: var(--card);
  border: 1px solid var(--line); border-radius: 1rem; }
svg { display: block; width: 4.5rem; height: 4.5rem; margin: 0 auto 1.25rem; fill: none; stroke: var(--card); stroke-width: 2.4;
  stroke-linecap: round; stroke-linejoin: round; border-radius: 50%; }
.good { background: var(--good); } .bad { background: var(--bad); } .waiting, .warn, .neutral { background: var(--quiet); }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem; }
h1, p { overflow-wrap: anywhere; } h1 { text-wrap: balance; } p { margin: 0; text-wrap: pretty; } p + p { margin-top: 1.25rem; }
code { display: inline-block; padding: .5rem .9rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--page);
  font: 1rem/1.4 ui-monospace, monospace; user-select: all; }
a { display: inline-block; padding: .6rem 1.2rem; color: var(--link); }
.button { display: block; padding: 1rem 1.25rem; border-radius: .75rem; background: var(--link); color: var(--on-link); font: 600 1.25rem/1.2 system-ui, sans-serif; text-decoration: none; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.quiet { font-size: 1rem; color: var(--quiet); } .problem { color: var(--bad); font-weight: 600; }
.code { padding: .75rem 0; border: 1px solid var(--line); border-radius: .75rem; background: var(--page); user-select: all; -webkit-user-select: all;
  font: 700 min(2.25rem, 10vw)/1.2 ui-monospace, monospace; letter-spacing: .06em; }
p + .code, .code + p { margin-top: .75rem; } form { margin-top: 1.5rem; } form + p { margin-top: .75rem; } label { display: block; margin-bottom: .4rem; text-align: left; font-weight: 600; }
input, button { box-sizing: border-box; width: 100%; min-height: 3.5rem; border-radius: .75rem; }
input { padding: .5rem 1rem; border: 2px solid var(--quiet); background: var(--page); color: inherit; text-align: center;
  text-transform: uppercase; font: 600 clamp(1rem, (100vw - 7rem) / 12.75, 1.6rem)/1.2 ui-monospace, monospace; letter-spacing: .06em; }
input[aria-invalid] { border-color: var(--bad); }
button { border: 0; padding: .75rem 1.25rem; background: var(--link); color: var(--on-link); font: 600 1.25rem/1.2 system-ui, sans-serif;
  cursor: pointer; } input + button { margin-top: 1rem; }
form p, form p + p { margin: 0 0 .6rem; text-align: left; } form > label + .quiet { margin-top: -.2rem; }
form + .quiet { margin-top: 1.75rem; } .quiet + p { margin-top: .75rem; }
footer { margin-top: 2rem; padding-top: 1rem; border-top: 1px solid var(--line); font-size: .9rem; color: var(--quiet); overflow-wrap: anywhere; }
`;

/** The style of the installer's page: first for a phone in a cellar, and wider for a desktop. */
export const INSTALLER_STYLE = `${PALETTE}* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { font: 1.0625rem/1.5 system-ui, sans-serif; margin: 0; background: var(--page); color: var(--text); overflow-wrap: anywhere; }
h1, h2, h3, p, dl, dd, ol, ul, figure { margin: 0; } h1, h2, h3 { line-height: 1.25; text-wrap: balance; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; } h3 { font-size: 1.0625rem; }
a { color: var(--link); text-underline-offset: .15em; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
[hidden] { display: none !important; }
.skip { position: absolute; left: 1rem; top: .5rem; z-index: 2; min-height: 2.75rem; padding: .75rem 1rem; background: var(--card); transform: translateY(-300%); }
.skip:focus { transform: none; }
.top { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1rem; max-width: 84rem; margin: 0 auto; padding: .5rem 1rem; }
.top a { flex: 1 1 8rem; min-width: 0; min-height: 2.75rem; display: flex; align-items: center; gap: .6rem; color: inherit; font-weight: 650; text-decoration: none; }
.top svg { flex: none; width: 1.75rem; height: 1.75rem; fill: none; stroke: var(--link); stroke-width: 2.2; stroke-linecap: round; stroke-linejoin: round; }
.top button { width: auto; border-color: transparent; background: none; padding: .5rem .75rem; font-size: 1rem; }
main { max-width: 84rem; margin: 0 auto; padding: .5rem 1rem 2rem; display: grid; gap: 1.25rem; grid-template-columns: minmax(0, 1fr); }
main.narrow { max-width: 40rem; }
.bottom { max-width: 84rem; margin: 0 auto; padding: 0 1rem 2rem; font-size: .9375rem; color: var(--quiet); }
.offline { position: sticky; top: 0; z-index: 1; padding: .6rem 1rem; text-align: center; background: var(--text); color: var(--page); }
.stack { display: grid; gap: .75rem; grid-template-columns: minmax(0, 1fr); justify-items: stretch; }
.cards { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); padding: 0; list-style: none; align-items: start; }
.card { display: grid; gap: .75rem; grid-template-columns: minmax(0, 1fr); padding: 1.1rem 1.1rem 1.25rem; background: var(--card); border: 1px solid var(--line); border-radius: 1rem; }
.card.bad { border-color: var(--bad); } .card h3 { font-size: 1.25rem; } .card h3 a { color: inherit; display: flex; justify-content: space-between; align-items: center; min-height: 2.75rem;
  text-decoration: none; } .card h3 a::after { content: "›"; content: "›" / ""; color: var(--quiet); font-size: 1.5rem; line-height: 1; padding-left: .5rem; }
.icon { flex: none; display: block; width: 1.6rem; height: 1.6rem; fill: none; stroke: var(--card); stroke-width: 2.6; stroke-linecap: round; stroke-linejoin: round; border-radius: 50%; }
.icon.good { background: var(--good); } .icon.warn { background: var(--warn); } .icon.bad { background: var(--bad); } .icon.waiting, .icon.neutral { background: var(--quiet); }
.state { display: flex; align-items: center; gap: .6rem; font-weight: 600; }
.state.good { color: var(--good); } .state.warn { color: var(--warn); } .state.bad { color: var(--bad); }
.health { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem .9rem; padding-block: .5rem; } .health h1 { flex: 1 1 9rem; } .health .icon { width: 2.6rem; height: 2.6rem; stroke-width: 2.4; }
.notice { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: .25rem .7rem; padding: .9rem 1rem; background: var(--card); border: 1px solid var(--line);
  border-left: .35rem solid var(--warn); border-radius: .75rem; } .notice.bad { border-left-color: var(--bad); } .notice.good { border-left-color: var(--good); }
.notice > * { grid-column: 2; } .notice > .icon { grid-column: 1; grid-row: 1; }
.quiet { color: var(--quiet); font-size: 1rem; } .problem { color: var(--bad); font-weight: 600; }
.facts { display: grid; gap: .35rem; } .facts div { display: flex; flex-wrap: wrap; gap: 0 .75rem; justify-content: space-between; align-items: baseline; }
.facts dt { color: var(--quiet); } .facts dd { margin-left: auto; text-align: right; }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; align-items: center; } .actions > * { flex: 1 1 12rem; }
.ending { border-top: 1px solid var(--line); padding-top: 1.25rem; margin-top: .5rem; }
.button, button { display: flex; align-items: center; justify-content: center; gap: .5rem; width: 100%; min-height: 3rem; padding: .6rem 1.1rem; border: 2px solid var(--link);
  border-radius: .75rem; background: none; color: var(--link); font: 600 1.0625rem/1.25 system-ui, sans-serif; text-align: center; text-decoration: none; cursor: pointer; }
.primary { background: var(--link); color: var(--on-link); } .danger { border-color: var(--bad); color: var(--bad); } .danger.primary { background: var(--bad); color: var(--card); }
.back { display: inline-flex; align-items: center; min-height: 2.75rem; justify-self: start; }
.users { display: flex; flex-wrap: wrap; gap: 0 1.25rem; padding: 0; list-style: none; } .users li:has(p) { flex: 1 1 100%; }
form { margin: 0; } form.fields { display: grid; gap: 1.25rem; } .field { display: grid; gap: .35rem; } fieldset { margin: 0; padding: 0; border: 0; min-width: 0; } legend { padding: 0; }
form:has([name=connection] option:not([value=""]):checked) .for-own { display: none; }
label, .label { font-weight: 600; } .hint { color: var(--quiet); font-size: .9375rem; }
input:not([type=checkbox]), select { width: 100%; min-height: 3rem; padding: .5rem .8rem; border: 2px solid var(--field); border-radius: .75rem; background: var(--card); color: inherit; font: inherit; }
[aria-invalid] { border-color: var(--bad) !important; } .tick { display: flex; gap: .75rem; align-items: start; min-height: 2.75rem; padding-top: .4rem; font-weight: 400; }
input[type=checkbox] { flex: none; width: 1.5rem; height: 1.5rem; margin: 0; accent-color: var(--link); }
.compare { font-size: 1.35rem; font-weight: 700; letter-spacing: .06em; white-space: nowrap; }
code, .value { font: .9375rem/1.4 ui-monospace, monospace; user-select: all; -webkit-user-select: all; }
.value { display: block; padding: .6rem .75rem; background: var(--page); border: 1px solid var(--line); border-radius: .5rem; }
.copied { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: .5rem; align-items: stretch; } .copied > :first-child { grid-column: 1; } .copied:not(:has(button:not([hidden]))) > :first-child { grid-column: 1 / -1; }
.copied button { width: auto; min-width: 6.5rem; }
@media (max-width: 22rem) { .copied { grid-template-columns: minmax(0, 1fr); } .card { padding: .8rem; } .top, main { padding-inline: .75rem; } }
.user-code { padding: .75rem 0; border: 1px solid var(--line); border-radius: .75rem; background: var(--page); text-align: center; user-select: all; -webkit-user-select: all;
  font: 700 min(2.25rem, 9vw)/1.2 ui-monospace, monospace; letter-spacing: .06em; }
.setup-code { font-size: min(1.75rem, 6vw); }
.steps { padding-left: 1.4rem; } .steps li + li { margin-top: .35rem; }
.picture { display: block; width: min(100%, 26rem); height: auto; margin: 0 auto; fill: none; stroke: var(--field); stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
.picture .sheet { fill: var(--page); } .picture .marked { fill: var(--tint); stroke: var(--link); stroke-width: 3; } .picture .writing { stroke: var(--text); stroke-width: 3; }
.picture .bad { stroke: var(--bad); stroke-width: 3; } .picture .faint { stroke: var(--line); stroke-width: 6; } .picture .arrow { stroke: var(--link); stroke-width: 4; }
.picture .dot, .picture .hub { fill: var(--field); } .picture .press { fill: var(--link); stroke: none; }
.qr { display: block; width: min(100%, 20rem); height: auto; margin: 0 auto; background: #fff; border-radius: .5rem; }
.door-label svg { display: block; width: min(100%, 30rem); height: auto; border: 1px solid var(--line); border-radius: .5rem; }
@page door-label { size: 60mm 40mm; margin: 0; }
@media print { .door-label { page: door-label; } body:has(.door-label), main:has(.door-label) { display: block; max-width: none; padding: 0; }
  body:has(.door-label) > :not(main), main > :not(.door-label):has(~ .door-label), .door-label ~ * { display: none; }
  .door-label svg { width: 60mm; height: 40mm; border: 0; border-radius: 0; } }
.two { display: grid; gap: 1.5rem; grid-template-columns: minmax(0, 1fr); }
.days { display: block; width: 100%; height: auto; } .days .good { fill: var(--good); } .days .warn { fill: var(--warn); } .days .bad { fill: var(--bad); } .days .neutral { fill: var(--line); }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1rem; font-size: .9375rem; color: var(--quiet); } .legend span { display: flex; align-items: center; gap: .4rem; }
.legend .days { width: .6rem; flex: none; }
.history { display: grid; padding: 0; list-style: none; } .history li { display: flex; gap: .6rem; padding: .6rem 0; border-top: 1px solid var(--line); } .history .icon { width: 1.3rem; height: 1.3rem; margin-top: .15rem; }
.history li > div { flex: 1; min-width: 0; } .history time { color: var(--quiet); font-size: .9375rem; }
summary { min-height: 2.75rem; display: list-item; align-content: center; cursor: pointer; font-weight: 600; }
details > * + * { margin-top: .75rem; }
@media (min-width: 60rem) { main { padding-top: 1rem; gap: 1.5rem; } .actions > * { flex: 0 1 auto; } .actions .button, .actions button { width: auto; min-width: 10rem; } .ending .stack { justify-items: start; }
.two { grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); grid-template-rows: auto 1fr; gap: 1.5rem 2rem; align-items: start; }
  .two > :nth-child(2) { grid-column: 2; grid-row: 1 / span 2; } }
`;
