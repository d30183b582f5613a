// The paper's match stage, with the parser and the tables that it leaves to the workload manager.
#define WEB_SERVER_ID 1
#define OTHER_LAMBDA_ID 2
#define LAMBDA_PORT 4369

header_type ethernet_t { fields { dstAddr : 48; srcAddr : 48; etherType : 16; } }
header_type ipv4_t {
    fields {
        version : 4; ihl : 4; diffserv : 8; totalLen : 16; identification : 16; flags : 3; fragOffset : 13;
        ttl : 8; protocol : 8; hdrChecksum : 16; srcAddr : 32; dstAddr : 32;
    }
}
header_type udp_t { fields { srcPort : 16; dstPort : 16; len : 16; checksum : 16; } }
header_type lambda_hdr_t { fields { wId : 32; } }
header_type serverHdr_t { fields { address : 160; } }
header_type swap_t { fields { mac : 48; ip : 32; port : 16; } }

header ethernet_t eth;
header ipv4_t ipv4;
header udp_t udp;
header lambda_hdr_t lambda_hdr;
header serverHdr_t serverHdr;
metadata swap_t swap;

primitive_action web_server();
primitive_action function_name();

parser start {
    extract(eth);
    return select (eth.etherType) { 0x0800 : parse_ipv4; default : ingress; }
}

parser parse_ipv4 {
    extract(ipv4);
    return select (ipv4.protocol) { 17 : parse_udp; default : ingress; }
}

parser parse_udp {
    extract(udp);
    return select (udp.dstPort) { LAMBDA_PORT : parse_lambda; default : ingress; }
}

parser parse_lambda {
    extract(lambda_hdr);
    extract(serverHdr);
    return ingress;
}

control ingress {
    if (valid(lambda_hdr)) {
        if (lambda_hdr.wId == WEB_SERVER_ID) {
            apply(web_server);
            apply(return_web_server_results);
        } else if (lambda_hdr.wId == OTHER_LAMBDA_ID) {
            apply(other_lambda);
            apply(return_other_lambda_results);
        }
    } else { apply(send_pkt_to_host); }
}

control egress { }

action run_web_server() { web_server(); }
action run_other() { function_name(); }
action forward(port) { modify_field(standard_metadata.egress_spec, port); }

action reply() {
    modify_field(swap.mac, eth.dstAddr);
    modify_field(eth.dstAddr, eth.srcAddr);
    modify_field(eth.srcAddr, swap.mac);
    modify_field(swap.ip, ipv4.dstAddr);
    modify_field(ipv4.dstAddr, ipv4.srcAddr);
    modify_field(ipv4.srcAddr, swap.ip);
    modify_field(swap.port, udp.dstPort);
    modify_field(udp.dstPort, udp.srcPort);
    modify_field(udp.srcPort, swap.port);
    modify_field(udp.checksum, 0);
    modify_field(standard_metadata.egress_spec, standard_metadata.ingress_port);
}

table web_server { actions { run_web_server; } }
table other_lambda { actions { run_other; } }
table return_web_server_results { actions { reply; } }
table return_other_lambda_results { actions { reply; } }
table send_pkt_to_host { actions { forward; } }
