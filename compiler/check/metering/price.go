package metering

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"math"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Price sets the costs of all charges in a BPF object file, in place, whatever they were: the compiler's passes cannot know how many
// instructions their code becomes. Each loop is charged what one iteration weighs, without the loops inside it.
func Price(object []byte) error {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return fmt.Errorf("price BPF object: %w", err)
	}
	for name, p := range spec.Programs {
		g, err := analyse(spec, p)
		if err != nil {
			return fmt.Errorf("program %s: %w", name, err)
		}
		if !g.metered() {
			continue
		}
		if err := g.price(); err != nil {
			return fmt.Errorf("program %s: %w", name, err)
		}
		if err := g.patch(object, p); err != nil {
			return fmt.Errorf("price BPF object: program %s: %w", name, err)
		}
	}
	return nil
}

// price finds a cost for each charge so that no cycle weighs more than it is charged.
func (g *graph) price() error {
	if len(g.Insns) > maxMetered {
		return g.refuse(0, "a metered program of more than %d instructions", maxMetered)
	}
	for i := range g.charges {
		g.charges[i].cost = 0
	}
	main := &g.funcs[0]
	n := main.To - main.From
	p := pricer{
		g: g, f: main, loop: make([]int, n), isHeader: make([]bool, n), member: make([]int, n), rank: make([]int, n), debt: make([]int64, n),
	}
	for at, i := range main.order {
		p.rank[i-main.From] = at
	}
	if err := p.loops(g.flow(main), 0); err != nil {
		return err
	}
	for i := range g.charges {
		c := &g.charges[i]
		if c.cost = max(c.cost, 1); c.cost > math.MaxInt32 {
			return g.refuse(c.first, "a loop that takes up to %d ms for each iteration", c.cost/PerMicrosecond/1000)
		}
		g.Insns[c.first+1].Constant = -int64(c.cost)
	}
	return nil
}

// A pricer takes loops apart from the outside in, and prices them from the inside out. A loop is a strongly connected component.
// Its header is where it is entered. The components that remain without its back edges are the loops inside it (F. Bourdoncle,
// "Efficient chaotic iteration strategies with widenings", 1993).
type pricer struct {
	g        *graph
	f        *function
	loop     []int  // for each instruction, the innermost loop found so far; 0 for none
	count    int    // of loops
	isHeader []bool // the instruction is a loop header; edges to it are not followed

	// To weigh an iteration: the loop of each instruction, its place in the function's order, and what is owed before it.
	member, rank []int
	debt         []int64
}

// loops prices all loops among nodes, which are in control-flow order.
func (p *pricer) loops(nodes []int, depth int) error {
	for _, component := range p.components(nodes) {
		if depth == maxDepth {
			return p.g.refuse(component[0], "loops more than %d deep in each other", maxDepth)
		}
		if err := p.price(component, depth); err != nil {
			return err
		}
	}
	return nil
}

// price prices one loop, whose nodes are in control-flow order.
func (p *pricer) price(nodes []int, depth int) error {
	p.count++
	id, header := p.count, nodes[0]
	for _, i := range nodes {
		p.loop[i-p.f.From] = id
	}
	p.isHeader[header-p.f.From] = true
	if err := p.loops(nodes, depth+1); err != nil {
		return err
	}
	var all, own []*charge
	for _, i := range nodes {
		if k := p.g.within[i]; k >= 0 {
			all = append(all, &p.g.charges[k])
			if p.loop[i-p.f.From] == id {
				own = append(own, &p.g.charges[k])
			}
		}
	}
	for _, i := range nodes {
		p.member[i-p.f.From] = id
	}
	slices.SortFunc(nodes, func(a, b int) int { return cmp.Compare(p.rank[a-p.f.From], p.rank[b-p.f.From]) })
	// The loop's own charges pay for it. If a path around it meets none of them, the charges of the loops inside it pay too.
	for _, payers := range [][]*charge{own, all} {
		around, err := p.around(header, id, nodes)
		if err != nil {
			return err
		}
		for _, c := range payers {
			c.cost += around
		}
	}
	return nil
}

// around is what the heaviest path from a loop's header back to it still owes.
func (p *pricer) around(header, id int, nodes []int) (uint64, error) {
	o := owed{g: p.g, f: p.f, order: nodes, header: header, debt: p.debt, inside: func(i int) bool { return p.member[i-p.f.From] == id }}
	if at, ok := o.settle(header); !ok {
		return 0, p.g.refuse(at, "a loop too intricate to meter")
	}
	most := int64(0)
	for _, i := range nodes {
		if o.debt[i-p.f.From] == nowhere {
			continue
		}
		for _, s := range p.g.Successors(i) {
			if s == header {
				most = max(most, o.after(i, s))
			}
		}
	}
	return uint64(most), nil
}

// components returns the strongly connected components among nodes that hold a cycle, each in the order of nodes: Tarjan's algorithm
// without recursion (R. Tarjan, "Depth-first search and linear graph algorithms", 1972).
func (p *pricer) components(nodes []int) [][]int {
	t := tarjan{p: p, in: map[int]bool{}, index: map[int]int{}, low: map[int]int{}, component: map[int]int{}}
	for _, i := range nodes {
		t.in[i] = true
	}
	for _, i := range nodes {
		if t.index[i] == 0 {
			t.visit(i)
		}
	}
	members := map[int][]int{}
	var found []int
	for _, i := range nodes {
		c := t.component[i]
		if members[c] == nil {
			found = append(found, c)
		}
		members[c] = append(members[c], i)
	}
	var loops [][]int
	for _, c := range found {
		if m := members[c]; len(m) > 1 || p.itself(m[0]) {
			loops = append(loops, m)
		}
	}
	return loops
}

// next lists the successors, without those by back edges.
func (p *pricer) next(i int) (next []int) {
	for _, s := range p.g.Successors(i) {
		if !p.isHeader[s-p.f.From] {
			next = append(next, s)
		}
	}
	return next
}

func (p *pricer) itself(i int) bool {
	for _, s := range p.next(i) {
		if s == i {
			return true
		}
	}
	return false
}

type tarjan struct {
	p          *pricer
	in         map[int]bool
	index, low map[int]int // index counts from 1
	component  map[int]int
	stack      []int
}

func (t *tarjan) visit(root int) {
	type step struct {
		node int
		next []int
	}
	enter := func(i int) step {
		t.index[i] = len(t.index) + 1
		t.low[i] = t.index[i]
		t.stack = append(t.stack, i)
		return step{i, t.p.next(i)}
	}
	path := []step{enter(root)}
	for len(path) > 0 {
		top := &path[len(path)-1]
		if len(top.next) == 0 {
			t.leave(top.node)
			path = path[:len(path)-1]
			if len(path) > 0 {
				up := path[len(path)-1].node
				t.low[up] = min(t.low[up], t.low[top.node])
			}
			continue
		}
		s := top.next[0]
		top.next = top.next[1:]
		switch {
		case !t.in[s]:
		case t.index[s] == 0:
			path = append(path, enter(s))
		case t.component[s] == 0: // on the stack
			t.low[top.node] = min(t.low[top.node], t.index[s])
		}
	}
}

// leave closes the component whose first visited instruction is i, if there is one.
func (t *tarjan) leave(i int) {
	if t.low[i] != t.index[i] {
		return
	}
	for {
		last := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.component[last] = t.index[i]
		if last == i {
			return
		}
	}
}

// patch writes the costs into the program in the object file.
func (g *graph) patch(object []byte, p *ebpf.ProgramSpec) error {
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return err
	}
	code, err := codeOf(file, object, p.Name)
	if err != nil {
		return err
	}
	k := 0
	for iter := g.Insns.Iterate(); iter.Next() && k < len(g.charges); {
		if iter.Index != g.charges[k].first+1 {
			continue
		}
		at := uint64(iter.Offset) * asm.InstructionSize
		if at+asm.InstructionSize > uint64(len(code)) || code[at] != byte(addImm) {
			return fmt.Errorf("instruction %d is not where the object file has it", iter.Index)
		}
		file.ByteOrder.PutUint32(code[at+4:], uint32(-int32(g.charges[k].cost)))
		k++
	}
	return nil
}

// codeOf returns the bytes of object that hold the program's instructions.
func codeOf(file *elf.File, object []byte, name string) ([]byte, error) {
	symbols, err := file.Symbols()
	if err != nil {
		return nil, err
	}
	for _, s := range symbols {
		if s.Name != name || elf.ST_TYPE(s.Info) != elf.STT_FUNC || int(s.Section) >= len(file.Sections) {
			continue
		}
		section := file.Sections[s.Section]
		from, to := section.Offset+s.Value, section.Offset+s.Value+s.Size
		if s.Value > section.Size || s.Size > section.Size-s.Value || to > uint64(len(object)) || from > to {
			return nil, fmt.Errorf("symbol %s is out of its section", name)
		}
		return object[from:to], nil
	}
	return nil, fmt.Errorf("no symbol %s", name)
}
