package cluster

import (
	"strings"
	"testing"
)

// Each shard and each backup is somewhere, and what is kept off NICs is on hosts.
func TestParts(t *testing.T) {
	p := place(t, "API gw*3@host > KVS*5 + Count*2:0.5", "3xType1-SmartNIC", 2, How{Policy: HCM})
	parts := p.Parts()
	if len(parts) != 3 || parts[0] != (PartUse{1, "API gw", 3, 0, 6, 0}) {
		t.Fatalf("%+v", parts)
	}
	for i, shards := range []int{3, 5, 2} {
		u := &parts[i]
		if u.Hosts+u.NICs != shards || u.BackupHosts+u.BackupNICs != 2*shards || u.Stage != min(2, i+1) {
			t.Errorf("%+v, want %d shards", u, shards)
		}
	}
	sum := make(map[string]int)
	for _, n := range run(t, p, Load{Rate: 1000, Requests: 10}).Nodes {
		for name, count := range n.Shards {
			sum[name] += count
		}
	}
	if len(sum) != 3 || sum["API gw"] != 3 || sum["KVS"] != 5 || sum["Count"] != 2 {
		t.Errorf("nodes have %v", sum)
	}
	if p := place(t, "KVS*2", "1xBeefy", 0, How{Policy: HCM}); p.Parts()[0] != (PartUse{1, "KVS", 2, 0, 0, 0}) {
		t.Errorf("%+v", p.Parts())
	}
}

// mine has servers that take less beyond idle than Table 1 has for their cores.
func mine(t *testing.T, c *Catalogue, peak string) {
	t.Helper()
	text := strings.Join(systemColumns, ",") + "\nMine,6000,90," + peak + ",100,16,1.2,128,2,16,16\n"
	if err := c.ReadSystems(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}

// Active power of Table 1 and wall power of a user's servers can disagree, which is said; with servers that can take as much, they agree.
func TestDisagree(t *testing.T) {
	for peak, want := range map[string]bool{"260": true, "600": false} {
		c := Default()
		mine(t, c, peak)
		a, err := c.Application("KVS*60")
		if err != nil {
			t.Fatal(err)
		}
		cl, err := c.Cluster("10xMine")
		if err != nil {
			t.Fatal(err)
		}
		p, err := (&Setup{a, cl, 1}).Place(t.Context(), How{Policy: HCM})
		if err != nil {
			t.Fatal(err)
		}
		rate, _ := p.Peak()
		for _, load := range []float64{0.1 * rate, rate} {
			w := p.Power(load)
			if beyond, much := p.Disagree(w); much != want || beyond != w.Wall-900 {
				t.Errorf("peak of %s W: %v W active, %v W beyond idle, disagree: %v", peak, w.Active, beyond, much)
			}
		}
	}
}

// A service that no application has changes nothing.
func TestUnusedServiceChangesNothing(t *testing.T) {
	power := func(c *Catalogue) Power {
		p, err := c.placed(t.Context(), "NFV-FIN", "3xType1-SmartNIC", How{Policy: HCM}, Shards)
		if err != nil {
			t.Fatal(err)
		}
		return p.Power(1e5)
	}
	c := Default()
	before := power(c)
	if err := c.ReadServices(strings.NewReader(strings.Join(serviceColumns, ",") + "\nZ,0,20,1000,1,55,30,8\n")); err != nil {
		t.Fatal(err)
	}
	if after := power(c); before != after || len(c.Replaced) > 0 {
		t.Errorf("power was %+v, is %+v", before, after)
	}
}

// A row may take the place of the paper's, which is told; of two of one name, neither is taken.
func TestReadTwice(t *testing.T) {
	c := Default()
	head := "# mine\n" + strings.Join(systemColumns, ",") + "\n"
	if err := c.ReadSystems(strings.NewReader(head + "beefy,1,1,2,1,1,1,1,0,0,0\n")); err != nil {
		t.Fatal(err)
	}
	if s, err := c.system("Beefy"); err != nil || s.Peak != 2 || len(c.Replaced) != 1 || c.Replaced[0] != "Beefy" {
		t.Errorf("%v, %+v, %v", err, s, c.Replaced)
	}
	err := c.ReadSystems(strings.NewReader(head + "A,1,1,2,1,1,1,1,0,0,0\nB,1,1,2,1,1,1,1,0,0,0\n a ,1,1,2,1,1,1,1,0,0,0\n"))
	if want := `lines 3 and 5 both have the system "a": take one of them out`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
