package sourcefilter

import (
	"errors"
	"fmt"
	"net/netip"
)

// RateMax is the most requests per second that a source may be limited to.
const RateMax = 1_000_000

// ParsePrefixes reads prefixes as 192.0.2.0/24 or 2001:db8::/32, and addresses, which stand for themselves.
func ParsePrefixes(texts []string) (all []netip.Prefix, err error) {
	for _, text := range texts {
		p, err := parsePrefix(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return checkPrefix(text, netip.PrefixFrom(a, a.BitLen()))
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("%q is not a prefix: write it as 192.0.2.0/24 or 2001:db8::/32, or an address", text)
	}
	return checkPrefix(text, p)
}

// checkPrefix refuses prefixes that may mean others than they seem to.
func checkPrefix(text string, p netip.Prefix) (netip.Prefix, error) {
	switch {
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%s has an address of IPv4 within one of IPv6: write it as one of IPv4", text)
	case p != p.Masked():
		return p, fmt.Errorf("%s is an address within a prefix: write %s for all of it, or %s for that address", text, p.Masked(), p.Addr())
	}
	return p, nil
}

// check refuses what the NIC program cannot do.
func (o *Options) check() error {
	switch {
	case len(o.Allow) == 0 && o.Rate == 0:
		return errors.New("a filter needs prefixes that are allowed, or a rate")
	case len(o.Allow) > int(FilterSfLimitSF_PREFIXES):
		return fmt.Errorf("a filter takes %d prefixes, not %d", FilterSfLimitSF_PREFIXES, len(o.Allow))
	case o.Rate > RateMax:
		return fmt.Errorf("a filter takes rates up to %d requests per second, not %d", RateMax, o.Rate)
	}
	return nil
}

// Check says what is wrong with prefixes and a rate.
func Check(allow []string, rate uint32) error {
	prefixes, err := ParsePrefixes(allow)
	if err != nil {
		return err
	}
	return (&Options{Allow: prefixes, Rate: rate}).check()
}
