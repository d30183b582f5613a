package demo

import (
	"fmt"
	"io"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
)

// Report is demo.json.
type Report struct {
	Environment Environment `json:"environment"`
	Limit       struct {
		XDPTxPPS float64 `json:"xdp_tx_pps"`
	} `json:"limit"`
	Lambdas map[string]Lambda `json:"lambdas"`
}

// Environment says where the figures come from.
type Environment struct {
	Kernel  string `json:"kernel"`
	CPUs    int    `json:"cpus"`
	NICMode string `json:"nic_mode"`
}

// Lambda is one lambda on all sides; medians.
type Lambda struct {
	Correct       bool   `json:"correct"`
	NIC           Side   `json:"nic"`
	Process       Side   `json:"process"` // blocking
	Spinning      Side   `json:"process_spinning"`
	CPU           CPU    `json:"cpu_ns_per_request"`
	Ratio         Ratios `json:"ratio"` // how many times better the NIC is than the blocking process
	RatioSpinning Ratios `json:"ratio_spinning"`
}

// Side has the figures of one side.
type Side struct {
	P50       float64  `json:"p50_us"`
	P99       float64  `json:"p99_us"`
	P999      float64  `json:"p999_us"`
	ClosedRPS float64  `json:"closed_rps"`
	OpenRPS   *float64 `json:"open_rps"` // null where an open loop makes no sense
}

// CPU is server CPU time per request.
type CPU struct {
	NIC     float64 `json:"nic"`
	Process float64 `json:"process"`
}

// Ratios say how many times better the NIC is.
type Ratios struct {
	P50       float64  `json:"p50"`
	P99       float64  `json:"p99"`
	ClosedRPS float64  `json:"closed_rps"`
	OpenRPS   *float64 `json:"open_rps"`
}

func lambdaOf(m *measure.Measurement, correct bool) Lambda {
	nic, process, spinning := m.Sides[measure.NIC], m.Sides[measure.Process], m.Sides[measure.Spinning]
	l := Lambda{
		Correct: correct, NIC: sideOf(nic), Process: sideOf(process), Spinning: sideOf(spinning),
		CPU: CPU{NIC: nic.CPU.Median(), Process: process.CPU.Median()},
	}
	l.Ratio, l.RatioSpinning = ratios(l.NIC, l.Process), ratios(l.NIC, l.Spinning)
	return l
}

func sideOf(f *measure.Figures) Side {
	s := Side{P50: f.P50.Median(), P99: f.P99.Median(), P999: f.P999.Median(), ClosedRPS: f.ClosedRate.Median()}
	if len(f.OpenRate) > 0 {
		open := f.OpenRate.Median()
		s.OpenRPS = &open
	}
	return s
}

func ratios(nic, other Side) Ratios {
	r := Ratios{
		P50: report.Lower.Ratio(nic.P50, other.P50), P99: report.Lower.Ratio(nic.P99, other.P99),
		ClosedRPS: report.Higher.Ratio(nic.ClosedRPS, other.ClosedRPS),
	}
	if nic.OpenRPS != nil && other.OpenRPS != nil {
		open := report.Higher.Ratio(*nic.OpenRPS, *other.OpenRPS)
		r.OpenRPS = &open
	}
	return r
}

// writeTable writes the report's medians and the spread of their samples.
func (r Report) writeTable(w io.Writer, measured []*measure.Measurement) error {
	fmt.Fprintf(w, "\nLinux %s, %d CPUs, veth, XDP in %s mode; medians (least to greatest)\n\n",
		r.Environment.Kernel, r.Environment.CPUs, r.Environment.NICMode)
	rows := [][]string{{"", "unit", "NIC", "process", "process, spinning", "times better", "spinning"}}
	for _, m := range measured {
		l := r.Lambdas[m.Work.Lambda]
		verdict := "every answer correct"
		if !l.Correct {
			verdict = "WRONG ANSWERS"
		}
		rows = append(rows, []string{m.Work.Lambda + ": " + verdict})
		for _, res := range m.Results() {
			name := res.Name[len(m.Work.Lambda)+1:]
			rows = append(rows, []string{
				"  " + name, res.Unit, fmt.Sprintf("%s (%s to %s)", report.Number(res.Value), report.Number(res.Spread[0]), report.Number(res.Spread[1])),
				report.Number(res.Against[measure.Process]), report.Number(res.Against[measure.Spinning]),
				report.Number(res.Ratio[measure.Process]), report.Number(res.Ratio[measure.Spinning]),
			})
		}
	}
	rows = append(rows, []string{"limit: bare XDP_TX echo", "1/s", report.Number(r.Limit.XDPTxPPS)})
	return report.Table(w, rows)
}
