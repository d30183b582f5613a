#define MEM_PER_LAMBDA 20
uint8_t memory[MEM_PER_LAMBDA * 3];
int web_server(EXTRACTED_HEADERS_T *headers,
                MATCH_DATA_T *match_data)
{
    serverHdr_T *serverHdr =
        hdr_get_serverHdr(headers);
    memcpy(serverHdr->address, memory,
           MEM_PER_LAMBDA);
    return RETURN_FORWARD;
}
int function_name(EXTRACTED_HEADERS_T *headers,
                    MATCH_DATA_T *match_data)
{
    // local/global memory and objects.
    int return_value = RETURN_FORWARD;
    return return_value;
}
