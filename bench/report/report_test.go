package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

func TestMedianAndSpread(t *testing.T) {
	for _, c := range []struct {
		in     Samples
		median float64
		spread [2]float64
	}{
		{nil, 0, [2]float64{}},
		{Samples{3}, 3, [2]float64{3, 3}},
		{Samples{5, 1, 3}, 3, [2]float64{1, 5}},
		{Samples{4, 1, 3, 2}, 2.5, [2]float64{1, 4}},
	} {
		if m, s := c.in.Median(), c.in.Spread(); m != c.median || s != c.spread {
			t.Errorf("%v: got %v, %v; want %v, %v", c.in, m, s, c.median, c.spread)
		}
	}
}

func TestRatioSaysHowManyTimesBetter(t *testing.T) {
	rate := Compare("rate", "1/s", Higher, "", Samples{300, 200, 400}, map[string]Samples{"process": {100}})
	delay := Compare("p50", "µs", Lower, "", Samples{5}, map[string]Samples{"process": {60}})
	if rate.Ratio["process"] != 3 || delay.Ratio["process"] != 12 {
		t.Errorf("got %v and %v, want 3 and 12", rate.Ratio, delay.Ratio)
	}
}

// The ranks are those of the statisticians' tables for the sign test, such as in Conover, "Practical Nonparametric Statistics".
func TestIntervalOfTheMedian(t *testing.T) {
	for n, want := range map[int][2]float64{6: {1, 6}, 8: {1, 8}, 9: {2, 8}, 10: {2, 9}, 15: {4, 12}, 20: {6, 15}, 25: {8, 18}, 30: {10, 21}} {
		var s Samples
		for i := range n {
			s = append(s, float64(1+i*7%n))
		}
		if got, ok := s.confidence(); !ok || got != want {
			t.Errorf("of %d: got %v, want %v", n, got, want)
		}
	}
	for n := range 6 {
		if got, ok := make(Samples, n).confidence(); ok {
			t.Errorf("of %d: got %v", n, got)
		}
	}
}

// A machine that is twice as slow for a while is so for both.
func TestIntervalIsOfTheRoundsRatios(t *testing.T) {
	r := Compare("packet", "ns", Lower, "", Samples{10, 20, 10, 20, 10, 20}, map[string]Samples{"alone": {11, 22, 11, 22, 11, 22}, "other": {1}})
	if want := [2]float64{1.1, 1.1}; r.Interval["alone"] != want || len(r.Interval) != 1 {
		t.Errorf("got %v, want %v", r.Interval, want)
	}
	var table bytes.Buffer
	if err := (Suite{Results: []Result{r}}).WriteTable(&table); err != nil || !strings.Contains(table.String(), "1.100 to 1.100") {
		t.Errorf("got %v\n%s", err, table.String())
	}
}

func TestJSONHasTheAgreedShape(t *testing.T) {
	s := Suite{Suite: "echo", Machine: ThisMachine("veth"), Results: []Result{
		Compare("xdp_tx_pps", "1/s", Higher, "open loop", Samples{1, 2, 3}, map[string]Samples{"process": {1}}),
	}}
	var b bytes.Buffer
	if err := s.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Suite   string
		Machine map[string]any
		Results []map[string]any
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"name", "unit", "value", "spread", "against", "ratio", "source"} {
		if _, ok := got.Results[0][key]; !ok {
			t.Errorf("no %q in %s", key, b.String())
		}
	}
	if got.Suite != "echo" || got.Machine["kernel"] == "" {
		t.Errorf("got %s", b.String())
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.00", 0.123: "0.12", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 999.4: "999", 999.6: "1,000",
		1234567: "1,234,567", -12345: "-12,345", math.Inf(1): "-",
	} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v): got %s, want %s", v, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := Table(&b, [][]string{{"name", "µs"}, {"a", "12.0"}, {"longer", "1"}}); err != nil {
		t.Fatal(err)
	}
	want := "name      µs\n────────────\na       12.0\nlonger     1\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// curve draws a distribution with a tail.
func curve(name string, typical float64) Curve {
	r := rand.New(rand.NewPCG(1, uint64(typical)))
	c := Curve{Name: name}
	micros := typical * 0.8
	for p := 0.0; p < 100; p = 100 - (100-p)*0.93 {
		micros *= 1 + 0.02*r.ExpFloat64()
		c.Points = append(c.Points, Point{p, micros})
		if 100-p < 0.001 {
			break
		}
	}
	return c
}

func TestLatencyIsWellFormedSVG(t *testing.T) {
	var panels []Panel
	for _, title := range []string{"web_server", "kv_client", "image_transformer"} {
		panels = append(panels, Panel{title, []Curve{curve("nic", 5), curve("process", 56), curve("process, spinning", 9)}})
	}
	var b bytes.Buffer
	if err := Latency(&b, panels); err != nil {
		t.Fatal(err)
	}
	if path := os.Getenv("PLOT"); path != "" { // to look at it
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"web_server", "image_transformer", "process, spinning", "99.9 %", "latency"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the plot does not say %q", want)
		}
	}
	d := xml.NewDecoder(&b)
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the plot is not XML: %v", err)
		}
	}
}

func TestLatencyOfNothing(t *testing.T) {
	if err := Latency(io.Discard, nil); err == nil {
		t.Error("no panels: got no error")
	}
	if err := Latency(io.Discard, []Panel{{Title: "empty", Curves: []Curve{{Name: "nic"}}}}); err == nil {
		t.Error("a curve without points: got no error")
	}
}
