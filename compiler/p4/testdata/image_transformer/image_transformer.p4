// An image transformer: the host (or RDMA) puts an image into memory and sets a flag; job 0 makes it grey.
#include "include/headers.p4"
#include "include/parser.p4"

primitive_action grayscale();

control ingress {
    if (valid(job) and job.number == 0) {
        apply(transform);
        apply(send_back);
    } else {
        apply(to_host);
    }
}

control egress {
}

action do_grayscale() { grayscale(); }
action forward(port) { modify_field(standard_metadata.egress_spec, port); }

action turn_round() {
    modify_field(eth.dstAddr, eth.srcAddr);
    modify_field(eth.srcAddr, tmp.mac);
    modify_field(ipv4.dstAddr, ipv4.srcAddr);
    modify_field(ipv4.srcAddr, tmp.ip);
    modify_field(udp.dstPort, udp.srcPort);
    modify_field(udp.srcPort, tmp.port);
    modify_field(udp.checksum, 0);
    modify_field(standard_metadata.egress_spec, standard_metadata.ingress_port);
}

table transform { actions { do_grayscale; } }
table send_back { actions { turn_round; } }
table to_host { actions { forward; } }
