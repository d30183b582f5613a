package roce

// HasRETH says whether packets of this operation begin a WRITE.
func (o Op) HasRETH() bool {
	return o == OpWriteFirst || o == OpWriteOnly || o == OpWriteOnlyImm || o == OpReadRequest
}

// HasImm says whether packets of this operation carry immediate data.
func (o Op) HasImm() bool {
	return o == OpSendLastImm || o == OpSendOnlyImm || o == OpWriteLastImm || o == OpWriteOnlyImm
}

// HeaderLen is the length of all headers behind UDP's.
func (o Op) HeaderLen() int {
	n := BTHLen
	if o.HasRETH() {
		n += RETHLen
	}
	if o.HasImm() {
		n += ImmLen
	}
	if o == OpAck {
		n += AETHLen
	}
	return n
}
