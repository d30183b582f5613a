package api

import "fmt"

// Placement says where the bytes of a packet stand in its message: at offset, in a message whose packets but the last
// carry size bytes each. The error is ErrMalformed, wrapped, where index, count and lengths are inconsistent.
func (h *Header) Placement() (offset, size int, err error) {
	n, index, count, total := int(h.Length), int(h.Index), int(h.Count), int(h.MessageLen)
	bad := func(what string) (int, int, error) {
		return 0, 0, fmt.Errorf("%w: %s: packet %d of %d, %d of %d bytes", ErrMalformed, what, index, count, n, total)
	}
	switch {
	case index >= count:
		return bad("index beyond count")
	case n > total:
		return bad("packet longer than message")
	case count == 1:
		if n != total {
			return bad("single packet is not the message")
		}
		return 0, n, nil
	case n == 0:
		return bad("empty packet of several")
	case index < count-1:
		offset, size = index*n, n
	default:
		offset = total - n
		size = offset / (count - 1)
		if size*(count-1) != offset || n > size {
			return bad("last packet does not fit the others")
		}
	}
	if Fragments(total, size) != count {
		return bad("wrong count")
	}
	return offset, size, nil
}
