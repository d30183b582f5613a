package cluster

import (
	"io"
	"math"
	"strings"
	"testing"
)

// endless is a file of one byte, over and over.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// Tables are read up to a bound.
func TestTablesAreBounded(t *testing.T) {
	head := strings.Join(serviceColumns, ",") + "\n"
	text := strings.NewReader
	var many strings.Builder
	for i := range maxLines + 1 {
		many.WriteString(strings.Repeat("v", 1+i%100) + strings.Repeat("w", i/100) + ",0,1,1,1,1,1,1\n")
	}
	comment := "#" + strings.Repeat(" ", maxTable-len(head)-1)
	for want, r := range map[string]io.Reader{
		"read the columns service,stateful,host_krps,host_watts,host_cores,nic_krps,nic_watts,nic_cores: it has more than 16 MiB": endless(0),
		"read a line: it has more than 16 MiB":                                                                    io.MultiReader(text(head), endless('\n')),
		"a field that begins with \"xxxxxxxxxxxxxxxxxxxx\" has 300 bytes":                                         text(head + strings.Repeat("x", 300) + ",0,1,1,1,1,1,1"),
		"read the columns service,stateful,host_krps,host_watts,host_cores,nic_krps,nic_watts,nic_cores: a field": text(strings.Repeat("x,", 7) + strings.Repeat("x", 300)),
		"line 1002: there are more than 1000 lines":                                                               text(head + many.String()),
		"read a line: it has": text(head + comment + "#"),
	} {
		if err := Default().ReadServices(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %.300v, want %s", err, want)
		}
	}
	if err := Default().ReadServices(text(head + comment + " ")); err == nil {
		t.Errorf("%d bytes were read", maxTable+1)
	}
	if err := Default().ReadServices(text(head + comment)); err != nil {
		t.Errorf("%d bytes: %v", maxTable, err)
	}
	if err := Default().ReadServices(text(head + "a\x00b,0,1,1,1,1,1,1")); err == nil || !strings.Contains(err.Error(), `service "a\x00b": a name is not empty, can be printed`) {
		t.Error(err)
	}
}

// What is read can be named, placed and simulated.
func FuzzReadTables(f *testing.F) {
	for name, systems := range map[string]bool{"services.csv": false, "systems.csv": true} {
		text, err := tables.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(systems, text)
	}
	f.Fuzz(func(t *testing.T, systems bool, text []byte) {
		c := Default()
		read, cluster, app := c.ReadServices, "1xType1-SmartNIC", "KVS"
		if systems {
			read = c.ReadSystems
		}
		if read(strings.NewReader(string(text))) != nil {
			return
		}
		for i := range min(len(c.Systems), 20) {
			name := c.Systems[len(c.Systems)-1-i].Name
			if systems {
				cluster = "1x" + name
			}
			checkUse(t, c, cluster, app)
		}
		for i := range min(len(c.Services), 20) {
			checkUse(t, c, "1xType1-SmartNIC", c.Services[len(c.Services)-1-i].Name+"*2 > KVS")
		}
	})
}

func checkUse(t *testing.T, c *Catalogue, cluster, app string) {
	t.Helper()
	cl, err := c.Cluster(cluster)
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Application(app)
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&Setup{a, cl, 0}).Place(t.Context(), How{Policy: HCM})
	if err != nil {
		return // a system may be too small
	}
	peak, _ := p.Peak()
	w := p.Power(peak)
	if !(peak > 0) || math.IsInf(peak, 0) || !(w.Active > 0) || math.IsInf(w.Active, 0) || !(w.Wall > 0) || math.IsInf(w.Wall, 0) {
		t.Fatalf("%s on %s: peak %v, %+v", app, cluster, peak, w)
	}
}
