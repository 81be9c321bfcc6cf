const FOREIGN = [
  'lo$ dummy ifb nlmon teql',
  // Containers and their networks, also those that home automation brings.
  'docker br- veth podman cni cali cilium flannel kube nodelocaldns nerdctl weave lxc lxd incus waydroid',
  'hassio balena resin supervisor\\d ipvl macvtap ovs- ovn',
  // Virtual machines.
  'virbr vnet vmnet vboxnet mpqemubr fwbr fwln fwpr',
  // Tunnels and private networks.
  'wg wt\\d tun tap utun ppp ipsec xfrm vti ip_vti ip6 ipip sit gre erspan l2tp vxlan geneve',
  'tailscale zt nordlynx nordtun proton pvpn ipv6leak mullvad CloudflareWARP ham\\d nebula cscotun gpd\\d',
  // Mobile networks, and Wi-Fi from one device to another.
  'wwan rmnet ccmni p2p',
];

/**
 * The names of interfaces that lead to containers, virtual machines, tunnels and providers, but not into the home network.
 * A home's own bridge (`br0`, `vmbr0`), bond or VLAN is none of them.
 */
export const FOREIGN_INTERFACES = new RegExp(`^(${FOREIGN.join(' ').replaceAll(' ', '|')})`);
