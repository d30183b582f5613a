// Each packet is cloned. Its job's number says where it goes and where its clone: bit 0 is the packet's, bit 1 the clone's; 0 is back
// to the client, 1 to the host. With 4, the clone is dropped; with 8, it waits for the host; with 16 and 17, the packet waits, and
// goes as with 0 and 1.
header_type ethernet_t { fields { dst : 48; src : 48; type_ : 16; } }
header_type ipv4_t {
    fields {
        front : 16; total : 16; rest : 40; protocol : 8; sum : 16; src : 32; dst : 32;
    }
}
header_type udp_t { fields { src : 16; dst : 16; length_ : 16; sum : 16; } }
header_type job_t { fields { number : 32; serial : 32; copy : 32; } }
header_type kept_t { fields { mac : 48; ip : 32; port : 16; clone : 8; number : 32; } }

header ethernet_t eth;
header ipv4_t ipv4;
header udp_t udp;
header job_t job;
metadata kept_t kept;

primitive_action hold();

field_list origin { kept.number; }

parser start {
    extract(eth);
    return select (eth.type_) { 0x0800 : ip; default : ingress; }
}
parser ip {
    extract(ipv4);
    return select (ipv4.protocol) { 17 : datagram; default : ingress; }
}
parser datagram {
    extract(udp);
    extract(job);
    return ingress;
}

action note() {
    modify_field(kept.number, job.number);
}
action turn_round() {
    modify_field(kept.ip, ipv4.dst);
    modify_field(kept.port, udp.dst);
    modify_field(ipv4.dst, ipv4.src);
    modify_field(ipv4.src, kept.ip);
    modify_field(udp.dst, udp.src);
    modify_field(udp.src, kept.port);
}
action to_wire() { modify_field(standard_metadata.egress_spec, 0); modify_field(udp.sum, 0); }
action to_host(port) { modify_field(udp.dst, port); modify_field(udp.sum, 0); modify_field(standard_metadata.egress_spec, 0x300); }
action mark() { modify_field(job.copy, 1); }
action wait() { hold(); }
action vanish() { drop(); }
action clone_it() { clone_egress_pkt_to_ingress(1, origin); }
action port_of_job() { modify_field(udp.src, 4369); }

table note_number { actions { note; } default_action : note; }
table waits { actions { wait; } default_action : wait; }
table turns { actions { turn_round; } default_action : turn_round; }
table marks { actions { mark; } default_action : mark; }
table vanishes { actions { vanish; } default_action : vanish; }
table wire { actions { to_wire; } default_action : to_wire; }
table asked { actions { port_of_job; } default_action : port_of_job; }
table host { actions { to_host; } }
table clone_host { actions { to_host; } }
table clones { actions { clone_it; } default_action : clone_it; }

control ingress {
    if (standard_metadata.instance_type == 0) {
        apply(note_number);
        if (kept.number == 16 or kept.number == 17) { apply(waits); }
        if (kept.number == 1 or kept.number == 3 or kept.number == 17) {
            apply(host);
        } else {
            apply(turns);
            apply(wire);
        }
    } else {
        apply(marks);
        if (kept.number == 4) { apply(vanishes); }
        if (kept.number == 8) { apply(waits); }
        if (kept.number == 1 or kept.number == 17) {
            apply(turns);
            apply(asked);
            apply(wire);
        } else if (kept.number == 2) {
            apply(turns);
            apply(clone_host);
        } else if (kept.number == 3) {
            apply(clone_host);
        } else if (kept.number != 4) {
            apply(wire);
        }
    }
}

control egress {
    if (standard_metadata.instance_type == 0) { apply(clones); }
}
