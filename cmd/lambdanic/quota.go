package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
)

// noLimit removes a quota.
const noLimit = "none"

// quotaFlags are the flags of `lambdanic namespace set`.
type quotaFlags struct {
	lambdas, memory, requests, nicTime, weight string
}

func (f *quotaFlags) define(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.lambdas, "lambdas", "", "how `many` functions may be deployed there, or none for no limit")
	cmd.Flags().StringVar(&f.memory, "memory", "", "the `size` of their maps and code together, as 64MiB, or none for no limit")
	cmd.Flags().StringVar(&f.requests, "requests", "", "how `many` requests per second the NIC serves for them, or none for no limit")
	cmd.Flags().StringVar(&f.nicTime, "nic-time", "", "how long they may run on the NIC, in `percent` of one CPU, as 10%, or none for no limit")
	cmd.Flags().StringVar(&f.weight, "weight", "", fmt.Sprintf("the `weight` of their share of --nic-budget and --nic-bandwidth, 1 to %d; %d unless set", api.MaxNamespaceWeight, api.DefaultNamespaceWeight))
}

// change reads the flags that are given.
func (f *quotaFlags) change(cmd *cobra.Command) (change api.QuotaChange, err error) {
	for _, one := range []struct {
		name, text string
		limit      *api.LimitChange
		parse      func(string) (uint64, error)
	}{
		{"lambdas", f.lambdas, &change.Lambdas, parseCount},
		{"memory", f.memory, &change.Memory, parseSize},
		{"requests", f.requests, &change.Requests, parseCount},
		{"nic-time", f.nicTime, &change.NICTime, parsePercent},
	} {
		switch {
		case !cmd.Flags().Changed(one.name):
		case one.text == noLimit:
			*one.limit = api.NoLimit()
		default:
			n, err := one.parse(one.text)
			if err != nil {
				return change, fmt.Errorf("--%s: %w, or %s for no limit", one.name, err, noLimit)
			}
			*one.limit = api.SetLimit(n)
		}
	}
	if cmd.Flags().Changed("weight") {
		n, err := parseWeight(f.weight)
		if err != nil {
			return change, fmt.Errorf("--weight: %w", err)
		}
		change.Weight = api.SetLimit(n)
	}
	if change == (api.QuotaChange{}) {
		return change, fmt.Errorf("there is no quota to set: name one with --lambdas, --memory, --requests, --nic-time or --weight, as `%s tenant --lambdas 10`", cmd.CommandPath())
	}
	return change, nil
}

func parseCount(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number from 0 to %d", text, uint32(math.MaxUint32))
	}
	return n, nil
}

func parseWeight(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n < 1 || n > api.MaxNamespaceWeight {
		return 0, fmt.Errorf("%q is not a weight: write a number from 1 to %d", text, api.MaxNamespaceWeight)
	}
	return n, nil
}

func parseSize(text string) (uint64, error) {
	var size api.Bytes
	err := size.UnmarshalText([]byte(text))
	return uint64(size), err
}

// percentOfCPU is one percent of one CPU, in nanoseconds per second.
const percentOfCPU = 1e7

// parsePercent reads a share of one CPU as nanoseconds per second.
func parsePercent(text string) (uint64, error) {
	share, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !strings.HasSuffix(text, "%") || !(share >= 0 && share <= 1e6) {
		return 0, fmt.Errorf("%q is not a share of a CPU: write one from 0%% on, as 2.5%%, or 200%% for two CPUs", text)
	}
	return uint64(math.Round(share * percentOfCPU)), nil
}

// minBudget is the least part of a CPU's time that can be shared: the data path counts it in millionths, about (LN_BUDGET).
const minBudget = percentOfCPU / 10

// parseBudget reads how much of each CPU's time namespaces may have; none is 0.
func parseBudget(text string) (uint64, error) {
	if text == noLimit {
		return 0, nil
	}
	ns, err := parsePercent(text)
	if err != nil || ns < minBudget || ns > 100*percentOfCPU {
		return 0, fmt.Errorf("%q is not a part of each CPU's time: write one from 0.1%% to 100%%, as 80%%, or %s to serve packets as they come", text, noLimit)
	}
	return ns, nil
}

// Rates that can be shared, in bits per second. At lower ones, a frame takes longer than requests are apart, and shares become coarse.
const minBandwidth, maxBandwidth = 1e7, 1e13

// parseBandwidth reads how many bits a second are sent for namespaces; none is 0.
func parseBandwidth(text string) (uint64, error) {
	if text == noLimit {
		return 0, nil
	}
	rate, unit, err := humanize.ParseSI(text)
	if err != nil || (unit != "bit" && unit != "bit/s") || !(rate >= minBandwidth && rate <= maxBandwidth) {
		return 0, fmt.Errorf("%q is not a rate: write one from 10Mbit to 10Tbit, as 8Gbit, or %s to send answers as they come", text, noLimit)
	}
	return uint64(rate), nil
}

// percent shows a share of one CPU.
func percent(ns uint64) string {
	return strconv.FormatFloat(float64(ns)/percentOfCPU, 'f', -1, 64) + "%"
}
