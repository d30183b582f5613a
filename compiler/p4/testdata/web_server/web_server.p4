// A web server: job 0 asks for the greeting, job 1 for how many greetings there were; the answer is 16 bytes of text.
#include "include/headers.p4"
#include "include/parser.p4"

primitive_action greet();
primitive_action count();

/* The sum of what UDP covers; a sender that left it out gets none either. */
field_list udp_list {
    ipv4.srcAddr;
    ipv4.dstAddr;
    8'0;
    ipv4.protocol;
    udp.length_;
    udp.srcPort;
    udp.dstPort;
    udp.length_;
    job.number;
    job.data;
    payload;
}

field_list_calculation udp_sum {
    input { udp_list; }
    algorithm : csum16;
    output_width : 16;
}

calculated_field udp.checksum {
    update udp_sum if (udp.checksum != 0);
}

control ingress {
    if (valid(job)) {
        if (job.number == 0) {
            apply(greeting);
            apply(return_greeting);
        } else if (job.number == 1) {
            apply(counter);
            apply(return_counter);
        } else {
            apply(unknown);
        }
    } else {
        apply(to_host);
    }
}

control egress {
}

action do_greet() { greet(); }
action do_count() { count(); }
action do_drop() { drop(); }
action forward(port) { modify_field(standard_metadata.egress_spec, port); }

action send_back(ttl) {
    modify_field(eth.dstAddr, eth.srcAddr);
    modify_field(eth.srcAddr, tmp.mac);
    modify_field(ipv4.dstAddr, ipv4.srcAddr);
    modify_field(ipv4.srcAddr, tmp.ip);
    modify_field(ipv4.ttl, ttl);
    modify_field(udp.dstPort, udp.srcPort);
    modify_field(udp.srcPort, tmp.port);
    modify_field(standard_metadata.egress_spec, standard_metadata.ingress_port);
}

table greeting { actions { do_greet; } }
table counter { actions { do_count; } }
table unknown { actions { do_drop; } }
table return_greeting { actions { send_back; } }
table return_counter { actions { send_back; } }
table to_host {
    reads { standard_metadata.ingress_port : exact; }
    actions { forward; }
}
